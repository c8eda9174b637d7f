import pytest

from tests.cli.program import inside, told_off
from torch_diode.files.shape_sets import read_shapes
from torch_diode.types.problem import MMShape

PROGRAM = """
import sys
import torch
import beside

torch.compiler.reset()
rows, code = int(sys.argv[sys.argv.index("--rows") + 1]), sys.argv[-1]
torch.compile(torch.mm)(torch.randn(rows, 40), torch.randn(beside.COLUMNS, 40).t())
sys.exit(int(code))
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "beside.py").write_text("COLUMNS = 56\n")
    return tmp_path


def test_matmuls_of_a_program_become_a_shape_set_even_if_it_fails(folder):
    arguments = ["program.py", "--rows", "24", "--output", "its own", "3"]
    ended = inside("trace", "--output", "shapes.json", *arguments)
    assert ended.code == 3, ended.err
    (shape,) = read_shapes(folder / "shapes.json")
    assert shape.problem == MMShape("mm", 24, 56, 40, dtype="float32", transpose_b=True)
    assert (shape.count, shape.origin) == (1, "program.py")
    assert "shapes.json: 1 problems, met 1 times" in ended.out


def test_a_wrong_path_is_refused_before_the_program_runs(folder):
    (folder / "program.py").write_text("raise SystemExit('ran')")
    assert "expected .json" in told_off("trace", "--output", "s.txt", "program.py")
    assert "no such file" in told_off("trace", "--output", "s.json", "other.py")
    said = told_off("trace", "--output", "s.json", ".")
    assert said.startswith(".: got a directory without a __main__.py")
    (folder / "s.json").touch()
    assert "exists already" in told_off("trace", "--output", "s.json", "program.py")
