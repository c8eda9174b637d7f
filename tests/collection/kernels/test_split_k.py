"""Split-K products against ATen; on a CPU only float32 is supported."""

import pytest
import torch

from torch_diode.collection.kernels.operands import operands
from torch_diode.collection.kernels.split_k import split_launch
from torch_diode.types.problem import MMShape


@pytest.mark.parametrize("layout", ["nn", "nt", "tn"])
def test_the_parts_add_up_to_the_product(layout):
    transposed = {"transpose_a": layout[0] == "t", "transpose_b": layout[1] == "t"}
    problem = MMShape("mm", 8, 16, 1024, dtype="float32", **transposed)
    tensors = operands(problem, torch.device("cpu"), torch.Generator().manual_seed(0))
    for parts in (2, 8):
        tensors.out.fill_(torch.nan)
        split_launch(tensors, parts)()
        torch.testing.assert_close(tensors.out, tensors.a @ tensors.b, rtol=1e-4, atol=1e-3)
