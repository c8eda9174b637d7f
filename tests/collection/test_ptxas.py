from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from torch_diode.collection.ptxas import inductors_ptxas, use_inductors_ptxas

SWITCH = "TRITON_PTXAS_PATH"
ROOT = Path(__file__).parents[2]
KERNEL = """
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def double(x):
    tl.store(x, 2 * tl.load(x))


def compiled():
    source = ASTSource(fn=double, signature={"x": "*fp32"}, constexprs={})
    triton.compile(source, target=GPUTarget("cuda", 80, 32))
"""
THEIRS = """
import sys
from pathlib import Path
from torch_diode.collection.ptxas import use_inductors_ptxas

use_inductors_ptxas(Path(sys.argv[1]))
import doubling

doubling.compiled()
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv(SWITCH, "")  # put back afterwards, whatever happens to it
    monkeypatch.delenv(SWITCH)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/ptxas").touch(0o755)
    return tmp_path


def test_the_one_that_torch_brings_is_used(folder):
    use_inductors_ptxas(folder)
    assert os.environ[SWITCH] == str(folder / "bin/ptxas")


def test_what_the_user_has_set_stays(folder, monkeypatch):
    monkeypatch.setenv(SWITCH, "mine")
    use_inductors_ptxas(folder)
    assert os.environ[SWITCH] == "mine"


def test_where_torch_brings_none_nothing_is_set(folder):
    (folder / "bin/ptxas").unlink()
    use_inductors_ptxas(folder)
    assert SWITCH not in os.environ
    (folder / "bin/ptxas").touch(0o644)
    use_inductors_ptxas(folder)
    assert SWITCH not in os.environ


@pytest.fixture
def another_release(folder, monkeypatch):
    """As if torch brought Triton's own assembler under another release."""
    import triton

    own = triton.knobs.nvidia.ptxas.path
    script = folder / "bin/ptxas"
    script.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo another\nexec "{own}" "$@"\n')
    monkeypatch.setenv("TRITON_CACHE_DIR", str(folder / "cache"))
    (folder / "doubling.py").write_text(KERNEL)
    monkeypatch.syspath_prepend(folder)
    return folder


def kernels(folder):
    return {path.parent.name for path in (folder / "cache").rglob("*.cubin")}


def test_what_inductors_processes_compiled_is_found_inside_and_only_there(another_release):
    import doubling

    folder = another_release
    path = os.pathsep.join([str(ROOT), str(folder)])
    subprocess.run(
        [sys.executable, "-c", THEIRS, str(folder)],
        env={**os.environ, "PYTHONPATH": path},
        check=True,
    )
    theirs = kernels(folder)
    assert len(theirs) == 1
    with inductors_ptxas(folder):
        doubling.compiled()
    assert kernels(folder) == theirs
    doubling.compiled()
    assert len(kernels(folder)) == 2, "outside it is Triton's own again"
    with inductors_ptxas(folder):
        doubling.compiled()
    assert len(kernels(folder)) == 2
    assert SWITCH not in os.environ


def test_inside_too_what_the_user_has_set_stays(folder, monkeypatch):
    monkeypatch.setenv(SWITCH, "mine")
    with inductors_ptxas(folder):
        assert os.environ[SWITCH] == "mine"
    assert os.environ[SWITCH] == "mine"


def test_it_is_put_back_whatever_happens(folder):
    def fail():
        assert os.environ[SWITCH] == str(folder / "bin/ptxas")
        raise RuntimeError

    with pytest.raises(RuntimeError), inductors_ptxas(folder):
        fail()
    assert SWITCH not in os.environ
