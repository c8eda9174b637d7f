"""Flex attention's kernels are lowered with the config that is asked for, and compiled."""

import pytest
import torch

from torch_diode.hardware import known
from torch_diode.integration.capture.attention import (
    attention,
    attention_inputs,
    compiled_attention,
    lowered_here,
    options_of,
)
from torch_diode.integration.capture.fake_gpu import lower, pretend
from torch_diode.types.candidate import KernelConfig

_NAMES = {
    "forward": ("block_m", "block_n"),
    "backward": ("block_m1", "block_n1", "block_m2", "block_n2"),
    "decode": ("block_n",),
}


def test_a_config_is_passed_as_the_options_of_a_call():
    config = KernelConfig((("block_m", 64), ("block_n", 32)), 2, 4)
    assert options_of(config) == {"BLOCK_M": 64, "BLOCK_N": 32, "num_stages": 2, "num_warps": 4}


def test_a_backward_has_the_gradient_and_the_forwards_results_as_inputs():
    forward = attention_inputs("forward", (2, 8, 1024, 64), torch.bfloat16)
    backward = attention_inputs("backward", (2, 8, 1024, 64), torch.bfloat16)
    decode = attention_inputs("decode", (2, 8, 1024, 64), torch.bfloat16)
    assert backward[:5] == forward
    assert [each.shape for each in backward[5:]] == [(2, 8, 1024), *[(2, 8, 1024, 64)] * 2]
    assert (decode[0].shape, decode[1].shape) == ((2, 8, 16, 64), (2, 8, 1024, 64))


@pytest.mark.skipif(bool(lowered_here()), reason=lowered_here())
@pytest.mark.parametrize("kind", _NAMES)
def test_the_compiled_kernel_has_the_config_and_says_what_it_needs(kind):
    config = KernelConfig(tuple((name, 32) for name in _NAMES[kind]), 1, 4)
    inputs = attention_inputs(kind, (1, 4, 1024, 64), torch.bfloat16)
    with pretend(known("nvidia-a100")):
        source = lower(attention(kind, options_of(config)), inputs).source
        compiled = compiled_attention(source)
    for name in _NAMES[kind]:
        assert f"{name.upper()} : tl.constexpr = 32" in source
    assert 0 < compiled.metadata.shared <= known("nvidia-a100").shared_memory_per_block
    assert compiled.metadata.num_warps == 4
