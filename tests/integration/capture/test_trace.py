from __future__ import annotations

import pytest
import torch

from torch_diode.integration import registration
from torch_diode.integration.capture.fake_gpu import Input, lower
from torch_diode.integration.capture.trace import tracing
from torch_diode.types.problem import MMShape


def test_the_problems_of_compiled_graphs_are_counted():
    @torch.compile
    def program(x, w):
        return torch.relu(x @ w.t()) @ w, torch.cos(x @ w.t() @ w)

    with tracing() as trace:
        program(torch.randn(24, 40), torch.randn(56, 40))
    assert trace.counts == {
        MMShape("mm", 24, 56, 40, dtype="float32", transpose_b=True): 2,
        MMShape("mm", 24, 40, 56, dtype="float32"): 2,
    }
    assert not trace.left_out


def test_a_graph_in_torchs_cache_is_counted_again():
    counts = []
    for _ in range(2):
        torch.compiler.reset()
        with tracing() as trace:
            torch.compile(torch.mm)(torch.randn(20, 30), torch.randn(30, 10))
        counts.append(trace.counts)
    assert counts[0] == counts[1]
    assert counts[0].total() == 1


@pytest.mark.usefixtures("fake_h200")
@pytest.mark.parametrize("on", [False, True])
def test_a_matmul_of_several_hook_calls_counts_once(on, benchmarked):
    if on:
        registration.enable()
    shapes = [Input((384,)), Input((256, 512)), Input((512, 384))]
    with tracing() as trace:
        lower(torch.addmm, shapes, {"max_autotune": True})
    assert trace.counts == {MMShape("addmm", 256, 384, 512): 1}


@pytest.mark.usefixtures("fake_h200")
def test_nothing_is_counted_outside():
    with tracing() as trace:
        pass
    lower(torch.mm, [Input((256, 512)), Input((512, 384))])
    assert not trace.counts


def test_a_shape_set_has_the_most_frequent_first():
    with tracing() as trace:
        trace.counts.update({MMShape("mm", 1, 2, 3): 1, MMShape("mm", 4, 5, 6): 7})
    shapes = list(trace.shapes("program.py"))
    assert [(s.problem.M, s.count, s.origin) for s in shapes] == [
        (4, 7, "program.py"),
        (1, 1, "program.py"),
    ]
