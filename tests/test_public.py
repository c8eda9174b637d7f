"""The public face, and what holds for all of the source."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import torch_diode

PACKAGE = Path(torch_diode.__file__).parent
ROOT = PACKAGE.parent
MODULES = sorted(PACKAGE.rglob("*.py"))
# The places that must survive anything.
MAY_CATCH_ALL = {
    PACKAGE / "integration" / "hooks" / "fallback.py",
    PACKAGE / "toolkit" / "program.py",
}
"""Around every decision; around a user's own program, whose faults are shown as Python does."""


def path_of(file: Path) -> str:
    return str(file.relative_to(ROOT))


@pytest.mark.parametrize("name", torch_diode.__all__)
def test_a_public_name_is_there(name):
    assert getattr(torch_diode, name) is not None
    assert name in dir(torch_diode)


def test_a_name_that_is_not_public_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Datset'"):
        torch_diode.Datset  # noqa: B018


def test_public_names_are_sorted_and_named_once():
    assert len(set(torch_diode.__all__)) == len(torch_diode.__all__)
    assert set(torch_diode.__all__) == set(torch_diode._HOMES)


def test_the_version_is_that_of_the_distribution():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert re.search(r'^version = "(.*)"$', text, re.MULTILINE)[1] == torch_diode.__version__


def modules_after(statement: str, **environ: str) -> set[str]:
    """What a fresh process has imported after a statement."""
    program = f"{statement}\nimport sys\nprint(*sys.modules)"
    ended = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **environ},
    )
    return set(ended.stdout.split())


def under(modules: set[str], *names: str) -> list[str]:
    return sorted(m for m in modules if any(m == n or m.startswith(f"{n}.") for n in names))


def test_importing_it_imports_neither_the_compiler_nor_what_files_need():
    modules = modules_after("import torch_diode")
    assert under(modules, "pyarrow", "msgpack", "typer", "rich", "safetensors") == []
    assert "torch._inductor" not in modules


def test_switched_off_it_imports_no_torch_either():
    modules = modules_after("import torch_diode", TORCH_DIODE="0")
    assert under(modules, "torch._inductor", "torch._dynamo", "pyarrow") == []


def test_the_library_imports_nothing_but_itself(tmp_path):
    """As its wheel lays the library out: the same tree with another `_distribution`."""
    package = tmp_path / "torch_diode"
    package.mkdir()
    for entry in PACKAGE.iterdir():
        if entry.name not in ("_distribution.py", "__pycache__"):
            (package / entry.name).symlink_to(entry)
    own = ROOT / "packaging" / "lib" / "distribution.py"
    (package / "_distribution.py").write_text(own.read_text(encoding="utf-8"), encoding="utf-8")
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\nimport torch_diode"
    modules = modules_after(program)
    assert under(modules, "torch", "numpy", "pyarrow", "typer", "rich") == []


@pytest.mark.parametrize("file", MODULES, ids=path_of)
def test_nothing_catches_everything_but_the_guard_and_who_runs_programs(file):
    found = [
        node.lineno
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ExceptHandler) and catches_all(node)
    ]
    assert not found or file in MAY_CATCH_ALL


def catches_all(node: ast.ExceptHandler) -> bool:
    if node.type is None:
        return True
    kinds = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
    names = {getattr(kind, "attr", getattr(kind, "id", "")) for kind in kinds}
    return bool(names & {"Exception", "BaseException"})


@pytest.mark.parametrize("file", MODULES, ids=path_of)
def test_nothing_that_is_loaded_can_run_code(file):
    assert ways_to_run_code(file.read_text(encoding="utf-8")) == []


def ways_to_run_code(source: str) -> list[str]:
    """Pickle in any of its names, and torch.load unless it says weights_only=True."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [a.name for a in node.names if a.name.split(".")[0] in PICKLERS]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in PICKLERS:
            found.append(str(node.module))
        elif isinstance(node, ast.Call):
            found += unsafe_call(node)
    return found


PICKLERS = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}


def unsafe_call(node: ast.Call) -> list[str]:
    called = ast.unparse(node.func)
    given = {k.arg: ast.unparse(k.value) for k in node.keywords}
    if called == "torch.load":
        return [] if given.get("weights_only") == "True" else ["torch.load without weights_only"]
    unsafe = given.get("weights_only") == "False" or given.get("allow_pickle") == "True"
    return [called] if unsafe else []


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "def f():\n    from pickle import loads",
        "torch.load(path)",
        "torch.load(path, weights_only=False)",
        "np.load(path, allow_pickle=True)",
        "load(path, weights_only=False)",
    ],
)
def test_a_way_to_run_code_would_be_seen(source):
    assert ways_to_run_code(source)
