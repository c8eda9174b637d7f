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
    given = ("7", "--steps", "3", "--json", "--hardware", "abacus")
    ended = torch_diode("explain", script, *given, TORCH_DIODE="1")
    assert ended.returncode == 7, ended.stderr
    assert "given ['7', '--steps', '3', '--json', '--hardware', 'abacus']" in ended.stdout
    assert "no decisions recorded" in ended.stdout
    assert "torch-diode is on" in ended.stdout


OWN_RULE = """
import torch_diode

@torch_diode.heuristic("matmul")
def own_rule(problem, candidates):
    return list(candidates)

torch_diode.enable(own_rule)
"""


def test_a_program_whose_graphs_torch_has_cached_is_explained_all_the_same(program, tmp_path):
    script = program(OWN_RULE + COMPILES)
    for _ in range(2):
        cache = str(tmp_path / "cache")
        ended = torch_diode("explain", "--json", script, TORCHINDUCTOR_CACHE_DIR=cache)
        assert [row["source"] for row in json.loads(ended.stdout)] == ["own_rule"], ended


def test_decisions_as_on_a_chip_are_shown_even_of_a_program_that_fails(program):
    script = program(COMPILES + "raise SystemExit(4)")
    ended = inside("explain", "--hardware", "NVIDIA H200", script)
    assert ended.code == 4, ended.err
    assert "no model for this hardware" not in ended.err
    assert "mm:8x8x8:float32:nn" in ended.out
    assert "model nvidia-h200" in ended.out


HARD = """
import torch
torch.compiler.reset()
table = torch.nn.Embedding(16, 8)

def run(w):
    return (torch.rand(8, 8) @ w).sum() + table(torch.arange(8)).sum()

torch.compile(run)(torch.randn(8, 8, requires_grad=True)).backward()
torch.compile(lambda a: a @ a + torch.tensor([1.0, 2.0]))(torch.ones(2, 2))
print("the program has run")
"""


def test_a_graph_that_cannot_be_lowered_is_one_line_and_the_others_are_explained(program):
    ended = inside("explain", "--hardware", "nvidia-h200", program(HARD))
    assert ended.code == 0, ended.err
    assert "the program has run" in ended.out
    assert "mm:2x2x2:float32:nn" in ended.out
    notes = [line for line in ended.err.splitlines() if "cannot be lowered" in line]
    assert notes
    assert all(line.startswith("graph ") and "nvidia-h200: " in line for line in notes)


OWN = """
import torch, torch_diode as td
torch.compiler.reset()

@td.heuristic("matmul")
def never(problem, candidates):
    return None

@td.heuristic("matmul")
def my_rule(problem, candidates):
    return [c for c in candidates if c.template == "aten"]

BODY
torch.compile(torch.mm)(torch.randn(64, 64), torch.randn(64, 64))
"""


@pytest.mark.parametrize("hardware", ["nvidia-h200", "amd-zen5"])
def test_what_the_program_enables_decides_or_nobody_does(hardware, program):
    for body, source in {
        "td.enable(my_rule)": "my_rule",
        "td.enable(td.Chain(never, my_rule))": "my_rule",
    }.items():
        ended = inside("explain", "--hardware", hardware, program(OWN.replace("BODY", body)))
        (row,) = (line for line in ended.out.splitlines() if line.startswith("mm:64x64x64"))
        assert f"  {source}  " in row
    ended = inside("explain", "--hardware", hardware, program(OWN.replace("BODY", "td.disable()")))
    assert "no decisions recorded" in ended.out
    assert "torch-diode is off (" in ended.out
    assert "torch decides" in ended.err


def test_a_program_that_closes_standard_output_is_one_sentence(program):
    ended = torch_diode("explain", program("import sys\nsys.stdout.close()"))
    assert ended.returncode == 2
    assert ended.stderr == "torch-diode: standard output: I/O operation on closed file.\n"


@pytest.mark.parametrize("chip", ["nvidia-h200", "amd-zen5"])
def test_switched_off_nobody_decides(chip, program, monkeypatch):
    monkeypatch.setenv("TORCH_DIODE", "0")
    ended = inside("explain", "--hardware", chip, program(COMPILES))
    assert ended.code == 0, ended.err
    assert "no decisions recorded\ntorch-diode is off (" in ended.out


def test_programs_get_json_alone_on_standard_output(program, monkeypatch):
    """Whatever way the program prints, and for a chip without a model."""
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    ended = torch_diode(
        *("explain", "--json", "--hardware", "nvidia-l40s", program(COMPILES + PRINTS)),
        TORCH_DIODE="1",
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


ANSWERS = """
import torch, torch_diode
from torch_diode.hardware import known
from torch_diode.integration.capture.fake_gpu import Input, lower, pretend

@torch_diode.heuristic("reduction")
def looped(question):
    return False if question.asks == "persistent" else None

with pretend(known("nvidia-h200")), torch_diode.using(looped):
    lower(lambda x: x.sum(-1), [Input((64, 512), torch.float32)])
"""


def test_answers_to_other_questions_are_shown_too(program):
    *_, answered = json.loads(inside("explain", "--json", program(ANSWERS)).out)
    assert (answered["answer"], answered["source"], answered["times"]) == (False, "looped", 1)
    question = answered["question"]
    assert (question["decision"], question["asks"]) == ("reduction", "persistent")
    assert (question["hardware"], question["outputs"]) == ("nvidia-h200", 64)
    assert question["default"] is True
