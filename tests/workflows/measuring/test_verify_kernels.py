from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from torch_diode.collection.kernels.library import KernelInfeasibleError
from torch_diode.collection.kernels.operands import Operands, operands
from torch_diode.types.errors import InvalidValueError
from torch_diode.types.problem import MMShape
from workflows.measuring.verify_kernels import verify_kernels

errors = pytest.importorskip("triton.runtime.errors")


@pytest.fixture(params=["float32", "float16"])
def tensors(request: pytest.FixtureRequest) -> Operands:
    problem = MMShape("mm", 16, 24, 32, dtype=request.param)
    return operands(problem, torch.device("cpu"), torch.Generator().manual_seed(0))


def raising(fault: Exception) -> Callable[[], Any]:
    def make() -> Any:
        raise fault

    return make


def test_right_kernels_may_be_timed(tensors):
    (aten, other) = verify_kernels(tensors, [tensors.aten, lambda: tensors.aten()])
    assert (aten.status, other.status) == ("ok", "ok")
    assert aten.launch is not None
    tensors.out.zero_()
    aten.launch()
    assert tensors.out.any()


def test_a_kernel_that_writes_something_else_is_wrong(tensors):
    def half() -> Any:
        return lambda: torch.mm(tensors.a / 2, tensors.b, out=tensors.out)

    def nothing() -> Any:
        return lambda: None

    first, second, right = verify_kernels(tensors, [half, nothing, tensors.aten])
    assert (first.status, first.launch, first.reason) == ("wrong", None, "wrong: off by 0.5")
    assert (second.status, second.reason) == ("wrong", "wrong: off by nan")
    assert right.status == "ok"


def test_a_percent_is_too_far_off(tensors):
    """As it is for the sweep: one table says so for both."""

    def nearly() -> Any:
        return lambda: torch.mm(tensors.a * 1.01, tensors.b, out=tensors.out)

    (found,) = verify_kernels(tensors, [nearly])
    assert found.status == "wrong"
    assert found.reason.startswith("wrong: off by 0.0")


@pytest.mark.parametrize(
    ("fault", "status"),
    [
        (KernelInfeasibleError("too large"), "out_of_resources"),
        (errors.OutOfResources(300, 200, "shared memory"), "out_of_resources"),
        (RuntimeError("No valid triton configs. out of resource: shared"), "out_of_resources"),
        (RuntimeError("something\nelse"), "failed"),
        (InvalidValueError("strides"), "failed"),
        (errors.PTXASError("no"), "failed"),
    ],
    ids=repr,
)
def test_what_cannot_run_says_why(tensors, fault, status):
    found, right = verify_kernels(tensors, [raising(fault), tensors.aten])
    assert found.launch is None
    assert found.status == status
    assert found.reason == f"{type(fault).__name__}: {fault}".splitlines()[0][:120]
    assert right.status == "ok"


def test_a_fault_that_is_no_kernels_passes(tensors):
    with pytest.raises(TypeError):
        verify_kernels(tensors, [raising(TypeError("a slip"))])
