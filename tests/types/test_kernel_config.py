import pytest

from torch_diode.types.candidate import KernelConfig
from torch_diode.types.errors import InvalidValueError

CONFIG = KernelConfig((("block_m", 128), ("block_n", 64)), 3, 8)


def test_a_config_is_within_another_if_nothing_that_needs_memory_is_larger():
    assert CONFIG.changed(block_n=32, num_stages=2).is_within(CONFIG)
    assert CONFIG.changed(num_warps=16).is_within(CONFIG)
    assert not CONFIG.changed(block_n=128, block_m=16).is_within(CONFIG)
    assert not CONFIG.changed(num_stages=4).is_within(CONFIG)


def test_its_sizes_are_the_blocks_then_stages_and_warps():
    assert CONFIG.sizes == (128, 64, 3, 8)
    assert CONFIG["block_n"] == 64
    with pytest.raises(InvalidValueError, match=r"got block_k; expected .* block_m, block_n"):
        CONFIG.changed(block_k=64)
