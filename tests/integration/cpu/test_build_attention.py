"""The C++ kernel of attention outside a compile."""

import pytest
import torch
from torch._inductor.lowering import lowerings

from torch_diode.integration.cpu import cpp_gemm
from torch_diode.integration.cpu.build_attention import ATEN_ATTENTION, build_attention
from torch_diode.integration.hooks.device_hardware import hardware_of

pytestmark = pytest.mark.skipif(
    bool(cpp_gemm.why_unavailable(hardware_of("cpu"))), reason="no C++ compiler for this CPU"
)


def test_it_computes_what_atens_kernel_does_and_restores_the_lowering():
    own = lowerings[ATEN_ATTENTION]
    query, key, value = (torch.randn(2, 3, rows, 40) for rows in (17, 150, 150))
    run = build_attention(query, key, value, mask := torch.randn(17, 150))
    expected = ATEN_ATTENTION(query, key, value, attn_mask=mask)[0]
    torch.testing.assert_close(run(), expected)
    assert lowerings[ATEN_ATTENTION] is own


def test_what_it_does_not_compute_is_refused():
    query, key, value = (torch.randn(1, 2, rows, 16).bfloat16() for rows in (8, 8, 8))
    with pytest.raises(Exception, match="attention in bfloat16: only ATen is on offer"):
        build_attention(query, key, value)
