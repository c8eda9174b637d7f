"""The public names, the cost of the import, and rules for all of the source."""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

import torch_diode

PACKAGE = Path(torch_diode.__file__).parent
ROOT = PACKAGE.parent
MODULES = sorted(PACKAGE.rglob("*.py"))
# Around every decision, and around a user's own program, whose errors are shown as Python does.
MAY_CATCH_ALL = {
    PACKAGE / "heuristics" / "time_limit.py",  # to raise it again on the caller's thread
    PACKAGE / "integration" / "hooks" / "fallback.py",
    PACKAGE / "toolkit" / "program.py",
}


def test_every_public_name_exists_once():
    assert all(getattr(torch_diode, name) is not None for name in torch_diode.__all__)
    assert set(torch_diode.__all__) <= set(dir(torch_diode))
    assert len(set(torch_diode.__all__)) == len(torch_diode.__all__)


def test_type_checkers_see_the_same_names():
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If)).body
    imports = [node for node in block if isinstance(node, ast.ImportFrom)]
    names = {a.asname for node in imports for a in node.names} - {None}
    names |= {name.id for node in block[len(imports) :] for name in node.targets[0].elts}
    assert names == set(torch_diode.__all__)


def test_another_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Datset'"):
        torch_diode.Datset  # noqa: B018


def test_the_version_is_that_of_the_distribution():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert re.search(r'^version = "(.*)"$', text, re.MULTILINE)[1] == torch_diode.__version__


def modules_after(statement: str, **environ: str) -> set[str]:
    """Modules of a fresh process after a statement."""
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


def test_the_import_registers_and_loads_neither_torch_nor_the_libraries_of_files():
    modules = modules_after("import torch_diode")
    heavy = ("torch", "numpy", "pyarrow", "msgpack", "typer", "rich", "safetensors")
    assert under(modules, *heavy) == []
    assert "torch_diode.integration.registration" in modules


def test_the_library_distribution_imports_only_itself(tmp_path):
    """The tree of its wheel: the same files with another `_distribution`."""
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


def parsed() -> dict[Path, list[ast.AST]]:
    return {file: list(ast.walk(ast.parse(file.read_text(encoding="utf-8")))) for file in MODULES}


def test_every_exception_is_caught_in_few_places_only():
    catching = {
        file
        for file, nodes in parsed().items()
        if any(isinstance(node, ast.ExceptHandler) and catches_all(node) for node in nodes)
    }
    assert catching <= MAY_CATCH_ALL


def catches_all(node: ast.ExceptHandler) -> bool:
    if node.type is None:
        return True
    kinds = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
    names = {getattr(kind, "attr", getattr(kind, "id", "")) for kind in kinds}
    return bool(names & {"Exception", "BaseException"})


def test_reading_files_cannot_run_code():
    unsafe = {file: ways_to_run_code(nodes) for file, nodes in parsed().items()}
    assert {file: ways for file, ways in unsafe.items() if ways} == {}


def ways_to_run_code(nodes: Iterable[ast.AST]) -> list[str]:
    """Any pickle module, and torch.load without weights_only=True."""
    ways = []
    for node in nodes:
        if isinstance(node, ast.Import):
            ways += [a.name for a in node.names if a.name.split(".")[0] in PICKLERS]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in PICKLERS:
            ways.append(str(node.module))
        elif isinstance(node, ast.Call):
            ways += unsafe_call(node)
    return ways


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
def test_a_way_to_run_code_is_detected(source):
    assert ways_to_run_code(ast.walk(ast.parse(source)))
