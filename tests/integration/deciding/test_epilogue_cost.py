"""Epilogues found in Inductor's real lowering, and whether Inductor fuses them."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch._inductor.codecache import PyCodeCache
from torch._inductor.virtualized import V
from torch.nn import functional

from tests.integration.cases import CONFIG, MAX_AUTOTUNE
from tests.integration.forced import Forced, FunctionHeuristic
from tests.samples import H200
from torch_diode import Candidate, Candidates, DiodeError, Ranking
from torch_diode.integration import registration
from torch_diode.integration.capture.fake_gpu import Dynamic, Input, lower
from torch_diode.integration.deciding.epilogue_cost import (
    IN_L2,
    IN_MEMORY,
    LAUNCH_US,
    Epilogue,
    epilogue_of,
)
from torch_diode.types.candidate import ATEN

M, N, K = 384, 512, 640
BYTES = M * N * 2
X, W, BIAS, FULL = Input((M, K)), Input((K, N)), Input((N,)), Input((M, N))
WIDE, NEXT = Input((4, M // 4, K)), Input((N, 256))

pytestmark = pytest.mark.usefixtures("fake_h200")


def epilogues_of(
    fn: Callable[..., Any], inputs: list[Input], config: dict[str, Any] | None = None
) -> list[Epilogue | None]:
    """The epilogue of each matmul of a function, with ATen chosen for all."""
    epilogues: list[Epilogue | None] = []

    def look(candidates: Candidates) -> Ranking:
        epilogues.append(epilogue_of(V.graph))
        times = np.where(candidates.is_template(ATEN), 1.0, 1e6)
        return Ranking.by_time(times, "looking")

    with registration.using(FunctionHeuristic(look), epilogues=True):
        lower(fn, inputs, config, generate=False)
    assert registration.status().counters.fallbacks == {}
    return epilogues


FUSED: dict[str, tuple[Callable[..., Any], list[Input], str]] = {
    "bias": (lambda x, w, b: torch.mm(x, w) + b, [X, W, BIAS], "add"),
    "relu": (lambda x, w: torch.relu(torch.mm(x, w)), [X, W], "relu"),
    "tanh": (lambda x, w: torch.tanh(torch.mm(x, w)), [X, W], "tanh"),
    "gelu": (lambda x, w: functional.gelu(torch.mm(x, w)), [X, W], "erf"),
    "tanh gelu": (lambda x, w: functional.gelu(x @ w, approximate="tanh"), [X, W], "tanh"),
    "silu times": (lambda x, w, z: functional.silu(torch.mm(x, w)) * z, [X, W, FULL], "mul"),
    "residual": (lambda x, w, r: r + torch.mm(x, w), [X, W, FULL], "add"),
    "cast": (lambda x, w: torch.mm(x, w).float(), [X, W], "convert_element_type"),
    "addmm": (lambda x, w, b: torch.relu(torch.addmm(b, x, w)), [X, W, BIAS], "relu"),
    "before a matmul": (
        lambda x, w, v: torch.mm(torch.tanh(torch.mm(x, w)), v),
        [X, W, NEXT],
        "tanh",
    ),
    "transposed before a matmul": (
        lambda x, w, v: torch.mm(v, torch.tanh(torch.mm(x, w)).t()),
        [X, W, Input((64, N))],
        "tanh",
    ),
    "bmm": (
        lambda x, w: torch.sigmoid(torch.bmm(x, w)),
        [Input((4, 96, K)), Input((4, K, N))],
        "sigmoid",
    ),
}


def test_a_slow_function_counts_each_time_it_occurs():
    def fn(x, w):
        return torch.tanh(torch.tanh(torch.mm(x, w)))

    (once,), (twice,) = epilogues_of(FUSED["tanh"][0], [X, W]), epilogues_of(fn, [X, W])
    assert twice.ops == ("tanh", "tanh")
    assert twice.extra_us(H200) < once.extra_us(H200)


@pytest.mark.parametrize("case", FUSED)
def test_pointwise_ops_are_found_and_fused_with_a_template_only(case):
    fn, inputs, op = FUSED[case]
    first, *others = epilogues_of(fn, inputs)
    assert first.product_bytes == BYTES
    assert op in first.ops
    assert not any(others)
    with registration.using(Forced(CONFIG), epilogues=True):
        fused = lower(fn, inputs).kernels
    with registration.using(Forced(None), epilogues=True):
        apart = lower(fn, inputs).kernels
    assert not [name for name in fused if name.startswith("triton_poi")]
    assert len([name for name in apart if name.startswith("triton_poi")]) == 1


def test_a_reshaped_epilogue_counts_where_the_release_fuses_it():
    def fn(x, w, b):
        return functional.gelu(x @ w + b)

    (epilogue,) = epilogues_of(fn, [WIDE, W, BIAS])
    with registration.using(Forced(CONFIG), epilogues=True):
        kernels = lower(fn, [WIDE, W, BIAS]).kernels
    fused = not [name for name in kernels if name.startswith("triton_poi")]
    assert (epilogue is not None) == fused


UNFUSED: dict[str, tuple[Callable[..., Any], list[Input]]] = {
    "nothing": (torch.mm, [X, W]),
    "a reduction": (lambda x, w: torch.mm(x, w).sum(-1), [X, W]),
    "a reduction behind": (lambda x, w, r: torch.relu(torch.mm(x, w) + r).sum(-1), [X, W, FULL]),
    "softmax": (lambda x, w: torch.softmax(torch.mm(x, w), -1), [X, W]),
    "a norm of the sum": (
        lambda x, w, r: functional.layer_norm(r + torch.mm(x, w), (N,)),
        [X, W, FULL],
    ),
    "transposed": (lambda x, w, r: torch.mm(x, w).t() + r, [X, W, Input((N, M))]),
    "reshaped and transposed": (
        lambda x, w, r: torch.mm(x, w).view(M, 8, 64).permute(1, 0, 2) * r,
        [X, W, Input((8, M, 64))],
    ),
    "the product is an output": (
        lambda x, w: (p := torch.mm(x, w), torch.relu(p)),
        [X, W],
    ),
    "another reader": (
        lambda x, w, v: ((p := torch.mm(x, w)).relu(), torch.mm(p, v)),
        [X, W, NEXT],
    ),
    "two results": (
        lambda x, w: ((p := torch.mm(x, w)).relu(), p.tanh()),
        [X, W],
    ),
    "more elements": (lambda x, w, r: torch.mm(x, w) + r, [X, W, Input((4, M, N))]),
}


@pytest.mark.parametrize("case", UNFUSED)
def test_an_epilogue_that_is_not_certainly_fused_does_not_count(case):
    assert not any(epilogues_of(*UNFUSED[case]))


def test_nothing_counts_where_inductor_fuses_no_epilogues():
    fn, inputs, _ = FUSED["gelu"]
    assert epilogues_of(fn, inputs, {"epilogue_fusion": False}) == [None]


def test_symbols_count_at_their_traced_sizes():
    inputs = [Input((Dynamic("s0", M), K)), W]
    (epilogue,) = epilogues_of(lambda x, w: torch.relu(torch.mm(x, w)), inputs)
    assert epilogue.product_bytes == BYTES


def gated(x: torch.Tensor, gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    return functional.silu(torch.mm(x, gate)) * torch.mm(x, up)


def test_an_epilogue_of_two_products_counts_for_the_later_one():
    first, second = epilogues_of(gated, [X, W, W])
    assert first is None
    assert second.product_bytes == BYTES


def test_an_epilogue_of_two_products_does_not_count_again_after_a_template():
    with registration.using(Forced(CONFIG), epilogues=True):
        kernels = lower(gated, [X, W, W]).kernels
    assert [bool(decision.epilogue) for decision in registration.explain()] == [False, False]
    assert not [name for name in kernels if name.startswith("triton_poi")]


def nearly_tied(candidates: Candidates) -> Ranking:
    """ATen a little before one config, all others far behind."""
    wanted = Candidate("triton::mm", CONFIG)
    times = [10.0 if c == Candidate(ATEN) else 10.5 if c == wanted else 99.0 for c in candidates]
    return Ranking.by_time(np.array(times), "nearly tied")


def test_the_epilogue_decides_between_close_candidates_and_is_explained():
    fn, inputs, _ = FUSED["gelu"]
    with registration.using(FunctionHeuristic(nearly_tied), epilogues=True):
        assert lower(fn, inputs).configs[0]["BLOCK_M"] == CONFIG.block_m
        decision = registration.explain()[-1]
        assert decision.winner.candidate == Candidate("triton::mm", CONFIG)
        assert decision.runners_up[0].candidate == Candidate(ATEN)
        aten_us = decision.runners_up[0].predicted_us
        assert aten_us > 10.5
        assert "erf" in decision.epilogue
        assert "then" in str(registration.explain())
        assert "mm" in lower(torch.mm, inputs).kernels


def test_epilogues_can_be_turned_off():
    fn, inputs, _ = FUSED["gelu"]
    with registration.using(FunctionHeuristic(nearly_tied), epilogues=False):
        assert "mm" in lower(fn, inputs).kernels
        assert registration.explain()[-1].epilogue == ""


def test_max_autotune_still_benchmarks_aten(benchmarked):
    fn, inputs, _ = FUSED["gelu"]
    config = {**MAX_AUTOTUNE, "benchmark_epilogue_fusion": False}
    with registration.using(FunctionHeuristic(nearly_tied), top=3, epilogues=True):
        lower(fn, inputs, config, generate=False)
    assert len(benchmarked[0]) == 3
    assert registration.explain()[-1].winner.candidate.template == "triton::mm"


def test_an_error_in_the_search_costs_only_the_epilogue(monkeypatch):
    def broken(graph):
        raise DiodeError("no such graph")

    monkeypatch.setattr("torch_diode.integration.deciding.epilogue_cost.epilogue_of", broken)
    fn, inputs, _ = FUSED["gelu"]
    with (
        pytest.warns(UserWarning, match="no such graph"),
        registration.using(Forced(CONFIG), epilogues=True),
    ):
        assert lower(fn, inputs).configs[0]["BLOCK_M"] == CONFIG.block_m


def extra_us(op: str, elements: int) -> float:
    return Epilogue((op,), elements, 2 * elements).extra_us(H200)


def test_the_extra_time_grows_with_the_bytes_and_less_within_the_l2():
    small, fits, large = (extra_us("add", size) for size in (0, 5 * 10**6, 5 * 10**8))
    assert small == LAUNCH_US
    assert fits == pytest.approx(LAUNCH_US + IN_L2 * 2e7 / (H200.memory_gbps * 1e3))
    assert large == pytest.approx(LAUNCH_US + IN_MEMORY * 2e9 / (H200.memory_gbps * 1e3))


@pytest.mark.parametrize("size", [1, 10**5, 10**7, 10**9])
def test_slow_functions_reduce_the_extra_time(size):
    assert extra_us("add", size) > extra_us("exp", size) > extra_us("erf", size) >= 0


@pytest.mark.parametrize(
    ("ops", "elements", "measured_us"),
    [
        ("convert_element_type", 64 * 2048, 1.5),
        ("convert_element_type", 4096 * 4096, 17.3),
        ("exp", 4096 * 4096, 12.4),
        ("exp", 6304 * 768, 3.2),
        ("erf", 4096 * 4096, 4.6),
        ("erf", 2048 * 256, 1.2),
    ],
)
def test_the_extra_time_is_near_the_measured_one(ops, elements, measured_us):
    assert extra_us(ops, elements) == pytest.approx(measured_us, rel=0.25, abs=0.3)


def test_nothing_counts_on_a_chip_of_unknown_rates():
    bare = replace(H200, memory_gbps=0.0)
    assert Epilogue(("add",), 10**6, 2 * 10**6).extra_us(bare) == 0


def shared_memory(fn: Callable[..., Any], inputs: list[Input]) -> int:
    """Shared memory of the template's kernel, compiled for the chip."""
    with registration.using(Forced(CONFIG), epilogues=True):
        source = lower(fn, inputs).source
    match = re.search(r"async_compile\.triton\('(triton_tem_\w+)', '''(.*?)'''", source, re.S)
    kernel = getattr(PyCodeCache.load(match[2]), match[1])
    kernel.precompile(warm_cache_only=True)
    binary = kernel.compile_results[0].kernel
    return int(binary.shared if hasattr(binary, "shared") else binary.metadata.shared)


def test_a_fused_epilogue_needs_no_more_shared_memory():
    def fn(x, w, z, r):
        return functional.silu(torch.mm(x, w)) * z + r

    assert shared_memory(fn, [X, W, FULL, FULL]) <= shared_memory(torch.mm, [X, W])
