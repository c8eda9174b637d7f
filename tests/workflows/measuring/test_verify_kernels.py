from collections.abc import Callable
from typing import Any

import pytest
import torch

from torch_diode.collection.kernels.operands import operands
from torch_diode.collection.kernels.outcome import KernelInfeasibleError
from torch_diode.types.errors import InvalidValueError
from torch_diode.types.problem import MMShape
from workflows.measuring.verify_kernels import verify_kernels

errors = pytest.importorskip("triton.runtime.errors")


@pytest.fixture(params=["float32", "float16"])
def tensors(request):
    problem = MMShape("mm", 16, 24, 32, dtype=request.param)
    return operands(problem, torch.device("cpu"), torch.Generator().manual_seed(0))


def raising(fault: Exception) -> Callable[[], Any]:
    def make() -> Any:
        raise fault

    return make


def test_correct_kernels_can_be_launched(tensors):
    (aten, other) = verify_kernels(tensors, [tensors.aten, lambda: tensors.aten()])
    assert (aten.status, other.status) == ("ok", "ok")
    tensors.out.zero_()
    aten.launch()
    assert tensors.out.any()


def test_an_incorrect_kernel_is_wrong_even_by_a_percent(tensors):
    def half():
        return lambda: torch.mm(tensors.a / 2, tensors.b, out=tensors.out)

    def nothing():
        return lambda: None

    def nearly():
        return lambda: torch.mm(tensors.a * 1.01, tensors.b, out=tensors.out)

    first, second, third, right = verify_kernels(tensors, [half, nothing, nearly, tensors.aten])
    assert (first.status, first.launch, first.reason) == ("wrong", None, "wrong: off by 0.5")
    assert (second.status, second.reason) == ("wrong", "wrong: off by nan")
    assert third.status == "wrong"
    assert third.reason.startswith("wrong: off by 0.0")
    assert right.status == "ok"


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
def test_a_kernel_that_cannot_run_has_a_status_and_a_reason(tensors, fault, status):
    failed, right = verify_kernels(tensors, [raising(fault), tensors.aten])
    assert failed.launch is None
    assert failed.status == status
    assert failed.reason == f"{type(fault).__name__}: {fault}".splitlines()[0][:120]
    assert right.status == "ok"
