import pytest
import torch

from torch_diode.files.shape_sets import read_shapes
from torch_diode.toolkit.collecting.trace import trace
from torch_diode.types.errors import EmptySelectionError, FileFaultError
from torch_diode.types.problem import MMShape


def step() -> None:
    torch._dynamo.reset()
    torch.compile(torch.mm)(torch.ones(24, 40), torch.ones(40, 56))


def test_the_problems_of_a_function_are_returned_and_written(tmp_path):
    result = trace(step, output=tmp_path / "s.json")
    (shape,) = result.shapes
    assert shape.problem == MMShape("mm", 24, 56, 40, dtype="float32")
    assert (shape.origin, result.calls, result.exit_code) == ("step", 1, 0)
    assert not result.left_out
    assert read_shapes(tmp_path / "s.json") == result.shapes


def test_a_function_that_compiles_nothing_is_refused(tmp_path):
    with pytest.raises(EmptySelectionError, match=r"does it call torch\.compile"):
        trace(lambda: None)


def test_a_wrong_output_is_refused_before_the_function_is_called(tmp_path):
    (tmp_path / "there.json").touch()
    for name, reason in (("s.txt", "expected .json"), ("there.json", "exists already")):
        with pytest.raises(FileFaultError, match=reason):
            trace(lambda: pytest.fail("called"), output=tmp_path / name)
