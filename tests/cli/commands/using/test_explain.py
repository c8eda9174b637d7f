from __future__ import annotations

import json

import pytest

from tests.cli.program import refusal, torch_diode

PROGRAM = """
import sys
import torch
print("given", sys.argv[1:])
torch.compile(lambda a, b: (a @ b).relu())(torch.randn(8, 8), torch.randn(8, 8))
sys.exit(int(sys.argv[1]))
"""
PRINTS = """
import ctypes, os, sys
print("printed")
os.system("echo by another")
sys.__stdout__.write("past it\\n")
ctypes.CDLL(None).puts(b"by a library")
"""


def test_a_program_runs_with_its_arguments_and_its_decisions_are_shown(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    ended = torch_diode("explain", script, "0", "--steps", "3", "--json", "--hardware", "abacus")
    assert ended.returncode == 0, ended.stderr
    assert "given ['0', '--steps', '3', '--json', '--hardware', 'abacus']" in ended.stdout
    assert "no decisions recorded" in ended.stdout
    assert "torch-diode is on" in ended.stdout


def test_decisions_come_as_json_for_programs(tmp_path, monkeypatch):
    script = tmp_path / "program.py"
    script.write_text(PRINTS)
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    ended = torch_diode("explain", "--json", script)
    assert json.loads(ended.stdout) == []
    printed = {"printed", "by another", "past it", "by a library"}
    assert set(ended.stderr.splitlines()) == printed


def test_as_on_another_chip_they_are_pure_json_too(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    ended = torch_diode("explain", "--json", "--hardware", "nvidia-a100", script, "0")
    (decision,) = json.loads(ended.stdout)
    assert decision["problem"]["M"] == 8
    assert "nvidia-a100: no model for this hardware" in ended.stderr
    assert "given ['0']" in ended.stderr


def test_a_program_that_fails_fails_the_command_with_its_own_exit_code(tmp_path):
    script = tmp_path / "program.py"
    script.write_text("raise SystemExit(7)")
    assert torch_diode("explain", script).returncode == 7


def test_a_program_that_is_not_there_is_one_sentence(tmp_path):
    assert "no such file" in refusal("explain", tmp_path / "missing.py")


@pytest.mark.parametrize(
    ("chip", "decides"), [("NVIDIA H200", "model nvidia-h200"), ("NVIDIA A100", "analytical")]
)
def test_a_program_without_that_gpu_is_explained_as_on_it(tmp_path, chip, decides):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    ended = torch_diode("explain", "--hardware", chip, script, "0")
    assert ended.returncode == 0, ended.stderr
    assert ("no model for this hardware" in ended.stderr) == (decides == "analytical")
    assert "mm:8x8x8:float32:nn" in ended.stdout
    assert decides in ended.stdout


def test_a_chip_nobody_knows_is_one_sentence(tmp_path):
    script = tmp_path / "program.py"
    script.write_text("")
    assert "expected one of nvidia-h200" in refusal("explain", "--hardware", "abacus", script)


def test_a_chip_that_cannot_be_explained_is_refused_before_the_program_runs(tmp_path):
    script = tmp_path / "program.py"
    script.write_text("print('ran')")
    said = refusal("explain", "--hardware", "amd-instinct-mi300x", script)
    assert said.endswith("a rocm chip; expected an NVIDIA chip")


def test_a_directory_is_a_program_only_with_a_main(tmp_path):
    assert "got a directory without a __main__.py" in refusal("explain", tmp_path)
    (tmp_path / "__main__.py").write_text("print('ran')")
    ended = torch_diode("explain", tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("ran")
