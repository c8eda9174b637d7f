"""Verification of kernels whose results have a known relative error."""

import pytest
import torch

from torch_diode.collection.kernels.operands import Operands, operands
from torch_diode.collection.kernels.reference import TOLERANCE, Reference
from torch_diode.collection.timers.timer import Launch
from torch_diode.types.problem import MMShape


def tensors_of(precision: str) -> Operands:
    tf32 = precision == "tf32"
    problem = MMShape("mm", 16, 24, 32, dtype="float32" if tf32 else precision, tf32=tf32)
    return operands(problem, torch.device("cpu"), torch.Generator().manual_seed(0))


def off_by(tensors: Operands, share: float) -> Launch:
    exact = tensors.a.double() @ tensors.b.double()
    return lambda: tensors.out.copy_(exact * (1 + share))


@pytest.mark.parametrize("precision", ["float16", "float32", "tf32"])
def test_the_tolerance_depends_on_the_precision(precision):
    tensors, limit = tensors_of(precision), TOLERANCE[precision]
    reference = Reference(tensors)
    near, far = (reference.error_of(off_by(tensors, share)) for share in (0.4 * limit, 2 * limit))
    assert reference.allows(float(near))
    assert not reference.allows(float(far))
    assert float(far) == pytest.approx(2 * limit, rel=0.5)
