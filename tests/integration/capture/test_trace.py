from __future__ import annotations

import pytest
import torch
import torch._inductor.config as inductor_config

from torch_diode.integration import registration
from torch_diode.integration.capture.fake_gpu import Input, lower
from torch_diode.integration.capture.trace import TracedProblem, tracing
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
        for problem, count in ((MMShape("mm", 1, 2, 3), 1), (MMShape("mm", 4, 5, 6), 7)):
            trace.traced[TracedProblem(problem, "cpu")] = count
    shapes = list(trace.shapes("program.py"))
    assert [(s.problem.M, s.count, s.origin) for s in shapes] == [
        (4, 7, "program.py"),
        (1, 1, "program.py"),
    ]


def test_a_frozen_linear_is_counted_with_its_weight_constant():
    linear = torch.nn.Linear(48, 32).eval()
    with tracing() as trace, torch.no_grad(), inductor_config.patch(freezing=True):
        torch.compile(linear)(torch.randn(8, 48))
    (traced,) = trace.traced
    assert traced.constant
    assert (traced.problem.M, traced.problem.N, traced.problem.K) == (8, 32, 48)
    assert traced.threads == torch.get_num_threads()


def test_a_dynamic_size_is_traced_with_its_range():
    torch.compiler.reset()
    x = torch.randn(24, 40)
    torch._dynamo.mark_dynamic(x, 0, min=2, max=512)
    with tracing() as trace:
        torch.compile(torch.mm)(x, torch.randn(40, 56))
    assert [(t.problem.M, t.dynamic) for t in trace.traced] == [(24, "M 2-512")]
    (again,) = map(TracedProblem.from_dict, [t.to_dict() for t in trace.traced])
    assert again in trace.traced
