import pytest
import torch
from torch._dynamo.source import ConstantSource
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv

from torch_diode.integration.hooks import torch_compat


@pytest.fixture
def batch() -> torch.SymInt:
    """A dynamic size that was 24 when the program ran."""
    shapes, source = ShapeEnv(), ConstantSource("batch")
    symbol = shapes.create_symbol(24, source, dynamic_dim=DimDynamic.DYNAMIC)
    size = shapes.create_symintnode(symbol, hint=24, source=source)
    assert isinstance(size, torch.SymInt)
    return size


def test_a_traced_size_is_that_of_the_run(batch):
    assert torch_compat.traced_size(batch) == torch_compat.traced_size_or_none(batch) == 24
    assert torch_compat.traced_size(7) == torch_compat.traced_size_or_none(7) == 7


def test_a_size_known_only_at_run_time_is_none():
    unbacked = ShapeEnv().create_unbacked_symint()
    assert torch_compat.traced_size_or_none(unbacked) is None


def test_the_range_of_a_dynamic_size_narrows_with_what_is_known_of_it(batch):
    assert torch_compat.range_of(batch) == "2-"
    assert batch <= 512
    assert torch_compat.range_of(batch) == "2-512"
    assert torch_compat.range_of(512) == ""


def test_symbols_are_no_plain_sizes(batch):
    assert torch_compat.plain_sizes([3, 4]) == torch_compat.hints([3, 4]) == (3, 4)
    assert torch_compat.plain_sizes([3, batch.node.expr]) is None
