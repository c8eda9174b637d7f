"""What follows a matmul, told in Inductor's real lowering; and what Inductor then makes of it."""

from __future__ import annotations

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
from torch_diode.hardware import known
from torch_diode.integration import registration
from torch_diode.integration.capture.fake_gpu import Dynamic, Input, lower
from torch_diode.integration.deciding.epilogue_cost import (
    IN_L2,
    IN_MEMORY,
    LAUNCH_US,
    Epilogue,
    epilogue_of,
)
from torch_diode.types.candidate import ATEN, Candidate
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.errors import DiodeError
from torch_diode.types.ranking import Ranking

H200 = known("nvidia-h200")
M, N, K = 384, 512, 640
BYTES = M * N * 2
X, W, BIAS, FULL = Input((M, K)), Input((K, N)), Input((N,)), Input((M, N))
WIDE, NEXT = Input((4, M // 4, K)), Input((N, 256))

pytestmark = pytest.mark.usefixtures("fake_h200")


def found_in(
    fn: Callable[..., Any], inputs: list[Input], config: dict[str, Any] | None = None
) -> list[Epilogue | None]:
    """What is found for each matmul of a function, ATen chosen for all."""
    found: list[Epilogue | None] = []

    def look(candidates: Candidates) -> Ranking:
        found.append(epilogue_of(V.graph))
        times = np.where(candidates.is_template(ATEN), 1.0, 1e6)
        return Ranking.by_time(times, "looking")

    with registration.using(FunctionHeuristic(look), epilogues=True):
        lower(fn, inputs, config, generate=False)
    assert registration.status().counters.fallbacks == {}
    return found


TAKEN: dict[str, tuple[Callable[..., Any], list[Input], str]] = {
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
    "turned round for a matmul": (
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


@pytest.mark.parametrize("case", TAKEN)
def test_pointwise_work_is_found_with_the_products_bytes(case: str) -> None:
    fn, inputs, op = TAKEN[case]
    first, *others = found_in(fn, inputs)
    assert first is not None
    assert first.product_bytes == BYTES
    assert op in first.ops
    assert not any(others)


def test_a_slow_function_counts_as_often_as_it_is_there() -> None:
    def fn(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return torch.tanh(torch.tanh(torch.mm(x, w)))

    (once,), (twice,) = found_in(TAKEN["tanh"][0], [X, W]), found_in(fn, [X, W])
    assert once is not None
    assert twice is not None
    assert twice.ops == ("tanh", "tanh")
    assert twice.extra_us(H200) < once.extra_us(H200)


@pytest.mark.parametrize("case", TAKEN)
def test_inductor_takes_along_what_is_found_and_only_with_a_template(case: str) -> None:
    fn, inputs, _ = TAKEN[case]
    with registration.using(Forced(CONFIG), epilogues=True):
        fused = lower(fn, inputs).kernels
    with registration.using(Forced(None), epilogues=True):
        apart = lower(fn, inputs).kernels
    assert not [name for name in fused if name.startswith("triton_poi")]
    assert len([name for name in apart if name.startswith("triton_poi")]) == 1


def test_regrouped_it_is_counted_where_the_release_takes_it_along() -> None:
    def fn(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return functional.gelu(x @ w + b)

    (found,) = found_in(fn, [WIDE, W, BIAS])
    with registration.using(Forced(CONFIG), epilogues=True):
        kernels = lower(fn, [WIDE, W, BIAS]).kernels
    taken_along = not [name for name in kernels if name.startswith("triton_poi")]
    assert (found is not None) == taken_along


LEFT: dict[str, tuple[Callable[..., Any], list[Input]]] = {
    "nothing": (torch.mm, [X, W]),
    "a reduction": (lambda x, w: torch.mm(x, w).sum(-1), [X, W]),
    "a reduction behind": (lambda x, w, r: torch.relu(torch.mm(x, w) + r).sum(-1), [X, W, FULL]),
    "softmax": (lambda x, w: torch.softmax(torch.mm(x, w), -1), [X, W]),
    "a norm of the sum": (
        lambda x, w, r: functional.layer_norm(r + torch.mm(x, w), (N,)),
        [X, W, FULL],
    ),
    "turned round": (lambda x, w, r: torch.mm(x, w).t() + r, [X, W, Input((N, M))]),
    "regrouped and turned round": (
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


@pytest.mark.parametrize("case", LEFT)
def test_what_is_not_certain_to_be_taken_along_is_not_counted(case: str) -> None:
    assert not any(found_in(*LEFT[case]))


def test_nothing_is_counted_where_inductor_fuses_no_epilogues() -> None:
    fn, inputs, _ = TAKEN["gelu"]
    assert found_in(fn, inputs, {"epilogue_fusion": False}) == [None]


def test_symbols_count_at_the_sizes_seen() -> None:
    inputs = [Input((Dynamic("s0", M), K)), W]
    (found,) = found_in(lambda x, w: torch.relu(torch.mm(x, w)), inputs)
    assert found is not None
    assert found.product_bytes == BYTES


def gated(x: torch.Tensor, gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    return functional.silu(torch.mm(x, gate)) * torch.mm(x, up)


def test_work_on_two_products_counts_for_the_later_one() -> None:
    first, second = found_in(gated, [X, W, W])
    assert first is None
    assert second is not None
    assert second.product_bytes == BYTES


def test_work_on_two_products_does_not_count_again_where_the_first_is_a_template() -> None:
    with registration.using(Forced(CONFIG), epilogues=True):
        kernels = lower(gated, [X, W, W]).kernels
    assert [bool(decision.epilogue) for decision in registration.explain()] == [False, False]
    assert not [name for name in kernels if name.startswith("triton_poi")]


def nearly_tied(candidates: Candidates) -> Ranking:
    """ATen a little before one config, all others far behind."""
    wanted = Candidate("triton::mm", CONFIG)
    times = [10.0 if c == Candidate(ATEN) else 10.5 if c == wanted else 99.0 for c in candidates]
    return Ranking.by_time(np.array(times), "nearly tied")


def test_the_epilogue_decides_between_close_ones_and_is_explained() -> None:
    fn, inputs, _ = TAKEN["gelu"]
    with registration.using(FunctionHeuristic(nearly_tied), epilogues=True):
        assert lower(fn, inputs).configs[0]["BLOCK_M"] == CONFIG.block_m
        decision = registration.explain()[-1]
        assert decision.winner.candidate == Candidate("triton::mm", CONFIG)
        assert decision.runners_up[0].candidate == Candidate(ATEN)
        aten_us = decision.runners_up[0].predicted_us
        assert aten_us is not None
        assert aten_us > 10.5
        assert "erf" in decision.epilogue
        assert "then" in str(registration.explain())
        assert "mm" in lower(torch.mm, inputs).kernels


def test_it_can_be_turned_off() -> None:
    fn, inputs, _ = TAKEN["gelu"]
    with registration.using(FunctionHeuristic(nearly_tied), epilogues=False):
        assert "mm" in lower(fn, inputs).kernels
        assert registration.explain()[-1].epilogue == ""


def test_max_autotune_still_has_aten_among_its_few(benchmarked: list[list[Any]]) -> None:
    fn, inputs, _ = TAKEN["gelu"]
    config = {**MAX_AUTOTUNE, "benchmark_epilogue_fusion": False}
    with registration.using(FunctionHeuristic(nearly_tied), top=3, epilogues=True):
        lower(fn, inputs, config, generate=False)
    assert len(benchmarked[0]) == 3
    assert registration.explain()[-1].winner.candidate.template == "triton::mm"


def test_a_fault_while_looking_costs_nothing_but_the_epilogue(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(graph: Any) -> None:
        raise DiodeError("no such graph")

    monkeypatch.setattr("torch_diode.integration.deciding.epilogue_cost.epilogue_of", broken)
    fn, inputs, _ = TAKEN["gelu"]
    with (
        pytest.warns(UserWarning, match="no such graph"),
        registration.using(Forced(CONFIG), epilogues=True),
    ):
        assert lower(fn, inputs).configs[0]["BLOCK_M"] == CONFIG.block_m


def extra_us(op: str, elements: int) -> float:
    return Epilogue((op,), elements, 2 * elements).extra_us(H200)


def test_the_extra_time_grows_with_the_bytes_and_less_while_they_stay_in_the_l2() -> None:
    small, fits, large = (extra_us("add", size) for size in (0, 5 * 10**6, 5 * 10**8))
    assert small == LAUNCH_US
    assert fits == pytest.approx(LAUNCH_US + IN_L2 * 2e7 / (H200.memory_gbps * 1e3))
    assert large == pytest.approx(LAUNCH_US + IN_MEMORY * 2e9 / (H200.memory_gbps * 1e3))


@pytest.mark.parametrize("size", [1, 10**5, 10**7, 10**9])
def test_slow_functions_are_no_gain_inside_a_template(size: int) -> None:
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
def test_it_is_near_what_was_measured(ops: str, elements: int, measured_us: float) -> None:
    assert extra_us(ops, elements) == pytest.approx(measured_us, rel=0.25, abs=0.3)


def test_nothing_is_counted_on_a_chip_whose_rates_are_not_known() -> None:
    bare = replace(H200, memory_gbps=0.0)
    assert Epilogue(("add",), 10**6, 2 * 10**6).extra_us(bare) == 0


def shared_memory(fn: Callable[..., Any], inputs: list[Input]) -> int:
    """Of the template's kernel, compiled for the chip."""
    with registration.using(Forced(CONFIG), epilogues=True):
        source = lower(fn, inputs).source
    found = re.search(r"async_compile\.triton\('(triton_tem_\w+)', '''(.*?)'''", source, re.S)
    assert found is not None
    kernel = getattr(PyCodeCache.load(found[2]), found[1])
    kernel.precompile(warm_cache_only=True)
    made = kernel.compile_results[0].kernel
    return int(made.shared if hasattr(made, "shared") else made.metadata.shared)


def test_work_taken_along_needs_no_more_shared_memory() -> None:
    def work(x: torch.Tensor, w: torch.Tensor, z: torch.Tensor, r: torch.Tensor) -> torch.Tensor:
        return functional.silu(torch.mm(x, w)) * z + r

    assert shared_memory(work, [X, W, FULL, FULL]) <= shared_memory(torch.mm, [X, W])
