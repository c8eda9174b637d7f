"""The rooms of the house: imports point one way, read off the source of every module."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import torch_diode

PACKAGE = Path(torch_diode.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))

# Each room, and those it may import from: what stands further left in the CONTRIBUTING's line.
GROUND = {"types", "hardware", "files", "candidates"}
MAY_IMPORT = {
    "types": set(),
    "hardware": {"types"},
    "files": {"types", "hardware"},
    "candidates": {"types", "hardware", "files"},
    "collection": GROUND,
    "model": GROUND,
    "heuristics": GROUND | {"model"},
    "integration": GROUND | {"collection", "model", "heuristics"},
    "report": GROUND | {"model", "heuristics"},
    "toolkit": GROUND | {"collection", "model", "heuristics", "integration", "report"},
    "cli": GROUND | {"collection", "model", "heuristics", "integration", "report", "toolkit"},
}
COMPILER = ("torch._inductor", "torch._dynamo")


def imported(source: str, module: str) -> Iterator[str]:
    """The full names a module imports, at its top or anywhere within."""
    package = module.split(".")[:-1]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield from (f"{base}.{alias.name}" for alias in node.names)


def room_of(module: str) -> str | None:
    """The room of a module, None for those that stand in the hall."""
    parts = module.split(".")
    is_ours = parts[0] == "torch_diode" and len(parts) > 1
    return parts[1] if is_ours and parts[1] in MAY_IMPORT else None


def name_of(file: Path) -> str:
    parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts)


def strays(source: str, module: str) -> list[str]:
    """Imports from a room this one may not know of."""
    room = room_of(module)
    if room is None:
        return []
    rooms = {name: room_of(name) for name in imported(source, module)}
    return [n for n, r in rooms.items() if r not in (None, room) and r not in MAY_IMPORT[room]]


@pytest.mark.parametrize("file", MODULES, ids=name_of)
def test_a_module_imports_only_from_the_rooms_below_its_own(file):
    assert strays(file.read_text(encoding="utf-8"), name_of(file)) == []


@pytest.mark.parametrize("file", MODULES, ids=name_of)
def test_only_integration_touches_the_compiler(file):
    module = name_of(file)
    touched = [
        name
        for name in imported(file.read_text(encoding="utf-8"), module)
        if name.startswith(COMPILER)
    ]
    assert not touched or room_of(module) == "integration"


def test_types_know_nothing_of_torch():
    for file in (PACKAGE / "types").glob("*.py"):
        names = imported(file.read_text(encoding="utf-8"), name_of(file))
        assert not [name for name in names if name.split(".")[0] == "torch"]


def test_every_room_is_on_the_list():
    """A new room has to be given its place."""
    rooms = {file.relative_to(PACKAGE).parts[0] for file in MODULES if file.parent != PACKAGE}
    assert rooms <= set(MAY_IMPORT)


def test_the_list_has_no_circle():
    order = list(MAY_IMPORT)
    for room, below in MAY_IMPORT.items():
        assert all(order.index(other) < order.index(room) for other in below)


@pytest.mark.parametrize(
    ("source", "module"),
    [
        ("import torch_diode.cli.app", "torch_diode.types.problem"),
        ("def f():\n    from torch_diode import files", "torch_diode.types.problem"),
        ("from ..integration import guard", "torch_diode.heuristics.chain"),
        (
            "from torch_diode.integration.hooks.fallback import Guard",
            "torch_diode.collection.sweep",
        ),
    ],
)
def test_an_import_that_points_the_other_way_would_be_seen(source, module):
    assert strays(source, module)
