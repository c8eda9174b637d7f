"""The packages are layers: imports point one way, folders stay small, docstrings say what is."""

import ast
import functools
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import torch_diode

PACKAGE = Path(torch_diode.__file__).parent


def name_of(file: Path) -> str:
    parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


SOURCES = {name_of(f): f.read_text(encoding="utf-8") for f in sorted(PACKAGE.rglob("*.py"))}

# Each package and those it may import from, as in CONTRIBUTING.md.
BASE = {"types", "hardware", "files", "candidates"}
MAY_IMPORT = {
    "types": set(),
    "hardware": {"types"},
    "files": {"types", "hardware"},
    "candidates": {"types", "hardware", "files"},
    "collection": BASE,
    "model": BASE,
    "heuristics": BASE | {"model"},
    "integration": BASE | {"collection", "model", "heuristics"},
    "toolkit": BASE | {"collection", "model", "heuristics", "integration"},
    "tuning": BASE | {"collection", "model", "heuristics", "integration", "toolkit"},
    "report": BASE | {"model", "heuristics", "toolkit"},
    "cli": BASE
    | {"collection", "model", "heuristics", "integration", "toolkit", "tuning", "report"},
}


def imports(nodes: Iterable[ast.AST], module: str) -> Iterator[str]:
    """Full names imported by these statements of a module."""
    package = module.split(".")[:-1]
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield from (f"{base}.{alias.name}" for alias in node.names)


def all_imports(source: str, module: str) -> list[str]:
    return list(imports(ast.walk(ast.parse(source)), module))


def package_of(module: str) -> str | None:
    """First-level package of a module, None for the modules at the top."""
    parts = module.split(".")
    return (
        parts[1] if parts[0] == "torch_diode" and parts[1:2] in [[p] for p in MAY_IMPORT] else None
    )


def wrong_imports(source: str, module: str) -> list[str]:
    """Imports of a module from packages above its own."""
    package = package_of(module)
    packages = {name: package_of(name) for name in all_imports(source, module)}
    allowed = {None, package, *MAY_IMPORT.get(package or "", MAY_IMPORT)}
    return [name for name, other in packages.items() if other not in allowed]


def test_a_module_imports_only_from_the_packages_below_its_own():
    wrong = {module: wrong_imports(source, module) for module, source in SOURCES.items()}
    assert {module: names for module, names in wrong.items() if names} == {}


def test_only_integration_touches_the_compiler():
    touching = {
        package_of(module)
        for module, source in SOURCES.items()
        if any(
            n.startswith(("torch._inductor", "torch._dynamo")) for n in all_imports(source, module)
        )
    }
    assert touching == {"integration"}


def test_types_do_not_import_torch():
    for module, source in SOURCES.items():
        if package_of(module) == "types":
            assert "torch" not in {name.split(".")[0] for name in all_imports(source, module)}, (
                module
            )


def test_every_package_has_its_place_and_the_order_has_no_cycle():
    folders = {f.name for f in PACKAGE.iterdir() if (f / "__init__.py").exists()}
    assert folders == set(MAY_IMPORT)
    order = list(MAY_IMPORT)
    for package, below in MAY_IMPORT.items():
        assert all(order.index(other) < order.index(package) for other in below)


@pytest.mark.parametrize(
    ("source", "module"),
    [
        ("import torch_diode.cli.app", "torch_diode.types.problem"),
        ("def f():\n    from torch_diode import files", "torch_diode.types.problem"),
        ("from ..integration import hooks", "torch_diode.heuristics.chain"),
        ("from torch_diode.integration.hooks import handler", "torch_diode.collection.sweep"),
    ],
)
def test_an_import_from_a_package_above_is_detected(source, module):
    assert wrong_imports(source, module)


def test_no_folder_has_more_than_14_modules():
    files = (f for f in PACKAGE.rglob("*.py") if f.name != "__init__.py")
    sizes = Counter(str(f.parent.relative_to(PACKAGE)) for f in files)
    assert {folder: count for folder, count in sizes.items() if count > 14} == {}


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements that run when a module is imported, without those for type checkers."""
    for node in body:
        if isinstance(node, ast.If):
            if "TYPE_CHECKING" not in ast.unparse(node.test):
                yield from statements(node.body)
            yield from statements(node.orelse)
        elif isinstance(node, ast.Try):
            yield from statements(node.body)
        else:
            yield node


@functools.cache
def longest_chain(module: str) -> tuple[str, ...]:
    """The longest chain of modules that importing one imports, itself first."""
    body = ast.parse(SOURCES[module]).body
    names = imports(statements(body), module)
    own = {
        n if n in SOURCES else n.rpartition(".")[0] for n in names if n.startswith("torch_diode.")
    }
    chains = (longest_chain(name) for name in own & SOURCES.keys() - {module, "torch_diode"})
    return (module, *max(chains, key=len, default=()))


def test_the_longest_chain_of_imports_has_at_most_11_modules():
    chain = max(map(longest_chain, SOURCES), key=len)
    assert len(chain) <= 11, " -> ".join(chain)


def test_fewer_than_2_percent_of_docstrings_open_with_a_question_word():
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    texts = [
        text
        for source in SOURCES.values()
        for node in ast.walk(ast.parse(source))
        if isinstance(node, documented) and (text := ast.get_docstring(node))
    ]
    questions = [t for t in texts if re.match(r"(What|Whom?|How|Where|Which|Whether)\b", t)]
    assert len(questions) < 0.02 * len(texts), questions
