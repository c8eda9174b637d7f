import json

import pytest

from tests.cli.program import inside, told_off, torch_diode

COMPILES = """
import torch
torch.compiler.reset()
torch.compile(torch.mm)(torch.randn(8, 8), torch.randn(8, 8))
"""
PRINTS = """
import ctypes, os, sys
print("printed")
os.system("echo by another")
sys.__stdout__.write("past it\\n")
ctypes.CDLL(None).puts(b"by a library")
"""


@pytest.fixture
def program(tmp_path):
    """Write a program of this text and return its path."""

    def write(text):
        (tmp_path / "program.py").write_text(text)
        return tmp_path / "program.py"

    return write


def test_a_program_runs_with_its_arguments_and_ends_the_command_with_its_exit_code(program):
    script = program("import sys\nprint('given', sys.argv[1:])\nsys.exit(int(sys.argv[1]))")
    ended = torch_diode("explain", script, "7", "--steps", "3", "--json", "--hardware", "abacus")
    assert ended.returncode == 7, ended.stderr
    assert "given ['7', '--steps', '3', '--json', '--hardware', 'abacus']" in ended.stdout
    assert "no decisions recorded" in ended.stdout
    assert "torch-diode is on" in ended.stdout


def test_decisions_as_on_a_chip_are_shown_even_of_a_program_that_fails(program):
    script = program(COMPILES + "raise SystemExit(4)")
    ended = inside("explain", "--hardware", "NVIDIA H200", script)
    assert ended.code == 4, ended.err
    assert "no model for this hardware" not in ended.err
    assert "mm:8x8x8:float32:nn" in ended.out
    assert "model nvidia-h200" in ended.out


def test_programs_get_json_alone_on_standard_output(program, monkeypatch):
    """Whatever way the program prints, and for a chip without a model."""
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    ended = torch_diode(
        "explain", "--json", "--hardware", "nvidia-l40s", program(COMPILES + PRINTS)
    )
    (decision,) = json.loads(ended.stdout)
    assert decision["problem"]["M"] == 8
    assert decision["source"] == "analytical"
    assert "nvidia-l40s: no model for this hardware" in ended.stderr
    assert {"printed", "by another", "past it", "by a library"} <= set(ended.stderr.splitlines())


def test_a_wrong_path_or_chip_is_refused_before_the_program_runs(program, tmp_path):
    assert "no such file" in told_off("explain", tmp_path / "missing.py")
    script = program("print('ran')")
    assert "expected one of nvidia-h200" in told_off("explain", "--hardware", "abacus", script)
    said = told_off("explain", "--hardware", "amd-instinct-mi300x", script)
    assert said.endswith("a rocm chip; expected an NVIDIA chip")
