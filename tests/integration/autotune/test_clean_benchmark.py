"""Real compiles on the CPU, with a second choice put in so that Inductor has something to time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch._inductor import select_algorithm as select
from torch._inductor.select_algorithm import AlgorithmSelectorCache, ExternKernelChoice

from torch_diode.integration.autotune import clean_benchmark as module
from torch_diode.integration.autotune.clean_benchmark import CleanBenchmark, clean_benchmark
from torch_diode.integration.autotune.feedback import (
    MatmulDatasetCollector,
    add_feedback,
    count_benchmarks,
)
from torch_diode.integration.deciding.choice_builder import BENCHMARK_SET
from torch_diode.integration.hooks.fallback import Fallback
from torch_diode.integration.hooks.torch_compat import add_preprocessing, annotations_of, launch_of
from torch_diode.types.candidate import ATEN

METHODS = ("benchmark_choices", "benchmark_in_sub_process", "lookup")
SLOW_MS = 20


def slow_mm(a: torch.Tensor, b: torch.Tensor, *, out: torch.Tensor) -> torch.Tensor:
    time.sleep(SLOW_MS / 1000)
    return torch.mm(a, b, out=out)


def broken_mm(a: torch.Tensor, b: torch.Tensor, *, out: torch.Tensor) -> torch.Tensor:
    raise RuntimeError("out of shared memory")


SLOW = ExternKernelChoice(slow_mm, name="torch_diode_slow_mm")
BROKEN = ExternKernelChoice(broken_mm, name="torch_diode_broken_mm")


def attributes() -> dict[str, Any]:
    return {name: vars(AlgorithmSelectorCache).get(name) for name in METHODS}


@pytest.fixture
def offering() -> Iterator[Callable[[ExternKernelChoice], None]]:
    """Lets a test put one more choice in every list of Inductor's."""
    undo = []

    def offer(extra: ExternKernelChoice) -> None:
        def more(choices: list[Any]) -> list[Any]:
            first = choices[0]
            return [extra.bind(first.input_nodes, first.layout), *choices]

        undo.append(add_preprocessing(more))

    yield offer
    for one in undo:
        one()


def compiled(*shape: int) -> torch.Tensor:
    m, n, k = shape
    torch.compiler.reset()
    options = {"max_autotune": True, "fx_graph_cache": False}
    a, b = torch.ones(m, k), torch.ones(k, n)
    function: Any = torch.compile(torch.mm, dynamic=False, options=options)
    result: torch.Tensor = function(a, b)
    return result


def test_what_inductor_tunes_is_timed_cleanly_and_the_dataset_has_it(offering):
    offering(SLOW)
    with MatmulDatasetCollector(clean=True) as collector:
        result = compiled(24, 32, 40)
    assert torch.equal(result, torch.full((24, 32), 40.0))
    assert collector.fallback.counters.fallbacks == {}
    assert clean_benchmark.fallback.counters.fallbacks == {}
    (timing,) = collector.dataset()
    assert timing.candidate.template == ATEN
    assert timing.method == "feedback-clean"
    assert timing.repeats == 9
    assert timing.spread is not None


def test_without_clean_the_times_are_inductors(offering):
    offering(SLOW)
    with MatmulDatasetCollector() as collector:
        compiled(24, 32, 48)
    (timing,) = collector.dataset()
    assert (timing.method, timing.repeats, timing.spread) == ("feedback", 1, None)


def test_a_choice_that_cannot_run_is_not_picked(offering):
    offering(BROKEN)
    with MatmulDatasetCollector(clean=True) as collector:
        result = compiled(24, 32, 56)
    assert torch.equal(result, torch.full((24, 32), 56.0))
    assert len(collector) == 1


def test_times_on_disk_are_not_taken_for_clean_ones(offering):
    offering(SLOW)
    compiled(24, 32, 64)
    with MatmulDatasetCollector() as collector:
        compiled(24, 32, 64)
    assert collector.dataset().texts("method") == ["feedback"]
    with MatmulDatasetCollector(clean=True) as collector:
        compiled(24, 32, 64)
    (timing,) = collector.dataset()
    assert (timing.method, timing.repeats) == ("feedback-clean", 9)


def test_the_same_matmul_is_timed_once_while_open(offering):
    offering(SLOW)
    with clean_benchmark.opened(), MatmulDatasetCollector(clean=True) as first:
        compiled(24, 32, 72)
        with MatmulDatasetCollector(clean=True) as second:
            compiled(24, 32, 72)
    assert second.dataset()[0].time_us == first.dataset()[0].time_us


def test_what_is_remembered_is_bounded(offering, monkeypatch):
    monkeypatch.setattr(module, "_KEPT", 2)
    offering(SLOW)
    with clean_benchmark.opened() as opened:
        for k in (24, 40, 48):
            compiled(24, 32, k)
            assert 1 <= len(opened._known) <= 2


def test_inductors_methods_are_back_after_the_last_and_not_before():
    before = attributes()
    with MatmulDatasetCollector(clean=True):
        inside = attributes()
        assert all(inside[name] is not before[name] for name in METHODS)
        with MatmulDatasetCollector(clean=True), MatmulDatasetCollector():
            pass
        assert attributes() == inside
    assert attributes() == before
    assert not clean_benchmark._timers


def test_after_an_error_in_the_users_code_they_are_back_too():
    before = attributes()
    with pytest.raises(ZeroDivisionError), MatmulDatasetCollector(clean=True):
        _ = 1 / 0
    assert attributes() == before


def test_what_somebody_put_over_ours_stays_and_passes_through(offering):
    offering(SLOW)
    own, heard = AlgorithmSelectorCache.__dict__["benchmark_choices"], []
    with clean_benchmark.opened():
        ours = AlgorithmSelectorCache.benchmark_choices

        def wrapped(cls: Any, choices: Any, *rest: Any, **more: Any) -> Any:
            heard.append(len(choices))
            return ours(choices, *rest, **more)

        AlgorithmSelectorCache.benchmark_choices = classmethod(wrapped)
    try:
        with MatmulDatasetCollector() as collector:
            compiled(24, 32, 80)
    finally:
        AlgorithmSelectorCache.benchmark_choices = own
    assert heard == [2]
    assert collector.dataset().texts("method") == ["feedback"]


def test_a_fault_in_the_timing_leaves_it_to_inductor(offering, monkeypatch):
    offering(SLOW)

    def failing(self: CleanBenchmark, device: torch.device) -> Any:
        raise KeyError("no timer")

    monkeypatch.setattr(CleanBenchmark, "_timer", failing)
    warned = pytest.warns(UserWarning, match="no timer")
    with warned, MatmulDatasetCollector(clean=True) as collector:
        compiled(24, 32, 88)
    assert collector.dataset().texts("method") == ["feedback"]


def test_autotuning_asked_for_in_other_processes_happens_here(offering):
    offering(SLOW)
    elsewhere = torch._inductor.config.patch(autotune_in_subproc=True)
    with elsewhere, MatmulDatasetCollector(clean=True) as collector:
        compiled(24, 32, 96)
    assert collector.dataset().texts("method") == ["feedback-clean"]


def test_a_choice_without_a_request_gives_its_launch_to_the_benchmarker():
    class Plain(select.ChoiceCaller):
        """As vendor kernels are on 2.9."""

        def to_callable(self) -> Any:
            return torch.mm

    a, out = torch.ones(4, 4), torch.empty(4, 4)
    launch = launch_of(Plain("plain", [], None, ""), (a, a), out)
    launch()
    assert torch.equal(out, torch.full((4, 4), 4.0))


def test_kinds_it_does_not_know_are_left_to_inductor():
    calls: list[Any] = []

    class Selector:
        @classmethod
        def benchmark_choices(cls, choices: Any, autotune_args: Any, collective: bool = False):
            calls.append((choices, collective))
            return dict.fromkeys(choices, 3.0)

        benchmark_in_current_process = benchmark_in_sub_process = benchmark_choices

        def lookup(self, *_: Any) -> None: ...

    with CleanBenchmark(Selector).opened():
        assert Selector.benchmark_choices(["cutlass"], None) == {"cutlass": 3.0}
        assert Selector.benchmark_choices([], None, collective=True) == {}
    assert calls == [(["cutlass"], False), ([], True)]


def test_what_triton_raises_for_too_large_a_kernel_is_known():
    pytest.importorskip("triton")
    assert [kind.__name__ for kind in module._cannot_run()] == ["RuntimeError", "OutOfResources"]


def test_benchmarks_are_counted_as_they_happen(offering):
    offering(SLOW)
    own = vars(AlgorithmSelectorCache)["benchmark_choice"]
    with count_benchmarks() as counts:
        compiled(24, 32, 104)
    assert counts == {"choices": 2, "benchmarked": 2}
    assert vars(AlgorithmSelectorCache)["benchmark_choice"] is own


def marking(choices: list[Any]) -> list[Any]:
    for choice in choices:
        annotations_of(choice)[BENCHMARK_SET] = True
    return choices


@pytest.fixture
def few() -> Iterator[CleanBenchmark]:
    clean_benchmark.enable_for_benchmark_sets(Fallback())
    yield clean_benchmark
    clean_benchmark.disable_for_benchmark_sets()


def test_of_all_lists_those_of_a_heuristics_few_are_timed_cleanly(offering, few):
    offering(SLOW)
    repeats: list[set[int | None]] = []

    def heard(timings: dict[Any, float], *_: Any) -> None:
        found = [few.measured.get(choice) for choice in timings]
        repeats.append({None if measured is None else measured.repeats for measured in found})

    undo = [add_feedback(heard)]
    compiled(24, 32, 112)
    undo.append(add_preprocessing(marking))
    try:
        result = compiled(24, 32, 120)
    finally:
        for one in undo:
            one()
    assert torch.equal(result, torch.full((24, 32), 120.0))
    assert repeats == [{None}, {1, 22}]


def test_between_two_such_lists_no_memory_is_kept(offering, few):
    offering(SLOW)
    undo = add_preprocessing(marking)
    try:
        compiled(24, 32, 128)
    finally:
        undo()
    assert not few._timers


def test_a_fault_with_them_is_counted_where_the_heuristic_counts_its_own(
    offering, few, monkeypatch
):
    offering(SLOW)

    def failing(self: CleanBenchmark, device: torch.device) -> Any:
        raise KeyError("no timer for few")

    monkeypatch.setattr(CleanBenchmark, "_timer", failing)
    fallback = Fallback()
    few.enable_for_benchmark_sets(fallback)
    undo = add_preprocessing(marking)
    try:
        with pytest.warns(UserWarning, match="no timer for few"):
            result = compiled(24, 32, 144)
    finally:
        undo()
    assert torch.equal(result, torch.full((24, 32), 144.0))
    assert sum(fallback.counters.fallbacks.values()) == 1


def test_a_user_who_wants_benchmarks_in_another_process_gets_that(offering, few):
    offering(SLOW)
    heard: list[int] = []
    apart = vars(AlgorithmSelectorCache)["benchmark_in_sub_process"]

    def counting(cls: Any, choices: Any, *rest: Any, **more: Any) -> dict[Any, float]:
        heard.append(len(choices))
        return dict.fromkeys(choices, 1.0)

    few.disable_for_benchmark_sets()
    AlgorithmSelectorCache.benchmark_in_sub_process = classmethod(counting)
    try:
        few.enable_for_benchmark_sets(Fallback())
        undo = add_preprocessing(marking)
        with torch._inductor.config.patch(autotune_in_subproc=True):
            compiled(24, 32, 136)
        undo()
        few.disable_for_benchmark_sets()
    finally:
        AlgorithmSelectorCache.benchmark_in_sub_process = apart
    assert heard == [2]


def test_a_collector_that_closes_leaves_it_for_the_few_and_back(few):
    inside = attributes()
    with MatmulDatasetCollector(clean=True):
        assert attributes() == inside
    assert attributes() == inside
    few.disable_for_benchmark_sets()
    assert all(attributes()[name] is not inside[name] for name in METHODS)
