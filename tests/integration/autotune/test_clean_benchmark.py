"""Real compiles on the CPU, with a second choice added so that Inductor benchmarks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch._inductor import select_algorithm as select
from torch._inductor.select_algorithm import AlgorithmSelectorCache, ExternKernelChoice

from tests.scripts import load_script
from torch_diode.integration.autotune import clean_benchmark as module
from torch_diode.integration.autotune.clean_benchmark import CleanBenchmark, clean_benchmark
from torch_diode.integration.autotune.feedback import (
    MatmulDatasetCollector,
    add_feedback,
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
    """Adds one more choice to every list of Inductor's."""
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


def test_a_collectors_dataset_has_clean_times(offering):
    offering(SLOW)
    with MatmulDatasetCollector(clean=True) as collector:
        result = compiled(24, 32, 40)
    assert torch.equal(result, torch.full((24, 32), 40.0))
    assert collector.fallback.counters.fallbacks == {}
    assert clean_benchmark.fallback.counters.fallbacks == {}
    (timing,) = collector.dataset()
    assert timing.candidate.template == ATEN
    assert timing.method == "feedback-clean"
    assert timing.repeats == 15
    assert timing.spread is not None


def test_a_choice_that_cannot_run_is_not_picked(offering):
    offering(BROKEN)
    with MatmulDatasetCollector(clean=True) as collector:
        result = compiled(24, 32, 56)
    assert torch.equal(result, torch.full((24, 32), 56.0))
    assert len(collector) == 1


def test_times_on_disk_are_not_used_as_clean_ones(offering):
    offering(SLOW)
    compiled(24, 32, 64)
    with MatmulDatasetCollector() as collector:
        compiled(24, 32, 64)
    (timing,) = collector.dataset()
    assert (timing.method, timing.repeats, timing.spread) == ("feedback", 1, None)
    with MatmulDatasetCollector(clean=True) as collector:
        compiled(24, 32, 64)
    (timing,) = collector.dataset()
    assert (timing.method, timing.repeats) == ("feedback-clean", 15)


def test_the_same_matmul_is_timed_once_while_open(offering):
    offering(SLOW)
    with clean_benchmark.opened(), MatmulDatasetCollector(clean=True) as first:
        compiled(24, 32, 72)
        with MatmulDatasetCollector(clean=True) as second:
            compiled(24, 32, 72)
    assert second.dataset()[0].time_us == first.dataset()[0].time_us


def test_inductors_methods_are_restored_after_the_last_collector():
    before = attributes()
    with MatmulDatasetCollector(clean=True):
        inside = attributes()
        assert all(inside[name] is not before[name] for name in METHODS)
        with MatmulDatasetCollector(clean=True), MatmulDatasetCollector():
            pass
        assert attributes() == inside
    assert attributes() == before
    assert not clean_benchmark._timers
    with pytest.raises(ZeroDivisionError), MatmulDatasetCollector(clean=True):
        _ = 1 / 0
    assert attributes() == before


def test_a_wrapper_around_ours_stays_and_passes_through(offering):
    offering(SLOW)
    own, lengths = AlgorithmSelectorCache.__dict__["benchmark_choices"], []
    with clean_benchmark.opened():
        ours = AlgorithmSelectorCache.benchmark_choices

        def wrapped(cls: Any, choices: Any, *rest: Any, **more: Any) -> Any:
            lengths.append(len(choices))
            return ours(choices, *rest, **more)

        AlgorithmSelectorCache.benchmark_choices = classmethod(wrapped)
    try:
        with MatmulDatasetCollector() as collector:
            compiled(24, 32, 80)
    finally:
        AlgorithmSelectorCache.benchmark_choices = own
    assert lengths == [2]
    assert collector.dataset().texts("method") == ["feedback"]


def failing_timer(self: CleanBenchmark, device: torch.device) -> Any:
    raise KeyError("no timer")


def test_a_timing_error_leaves_the_list_to_inductor(offering, monkeypatch):
    offering(SLOW)
    monkeypatch.setattr(CleanBenchmark, "_timer", failing_timer)
    warned = pytest.warns(UserWarning, match="no timer")
    with warned, MatmulDatasetCollector(clean=True) as collector:
        compiled(24, 32, 88)
    assert collector.dataset().texts("method") == ["feedback"]


def test_a_collector_times_here_also_where_subprocesses_are_set(offering):
    offering(SLOW)
    elsewhere = torch._inductor.config.patch(autotune_in_subproc=True)
    with elsewhere, MatmulDatasetCollector(clean=True) as collector:
        compiled(24, 32, 96)
    assert collector.dataset().texts("method") == ["feedback-clean"]


def test_the_launch_of_a_choice_without_a_benchmark_request_is_captured():
    class Plain(select.ChoiceCaller):
        """Like vendor kernels on 2.9."""

        def to_callable(self) -> Any:
            return torch.mm

    a, out = torch.ones(4, 4), torch.empty(4, 4)
    launch = launch_of(Plain("plain", [], None, ""), (a, a), out)
    launch()
    assert torch.equal(out, torch.full((4, 4), 4.0))


def test_other_kinds_of_choices_are_left_to_inductor():
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


def test_tritons_out_of_resources_error_is_handled():
    pytest.importorskip("triton")
    assert [kind.__name__ for kind in module._cannot_run()] == ["RuntimeError", "OutOfResources"]


def test_choices_and_benchmarks_are_counted(offering):
    offering(SLOW)
    own = vars(AlgorithmSelectorCache)["benchmark_choice"]
    with load_script("benchmarks", "collection_rate").count_benchmarks() as counts:
        compiled(24, 32, 104)
    assert counts == {"choices": 2, "benchmarked": 2}
    assert vars(AlgorithmSelectorCache)["benchmark_choice"] is own


@pytest.fixture
def benchmark_sets() -> Iterator[CleanBenchmark]:
    """The clean benchmark, enabled for benchmark sets."""
    clean_benchmark.enable_for_benchmark_sets(Fallback())
    yield clean_benchmark
    clean_benchmark.disable_for_benchmark_sets()


@pytest.fixture
def annotating() -> Iterator[None]:
    """Every list is a benchmark set."""

    def annotate(choices: list[Any]) -> list[Any]:
        for choice in choices:
            annotations_of(choice)[BENCHMARK_SET] = True
        return choices

    undo = add_preprocessing(annotate)
    yield
    undo()


def test_a_list_that_is_no_benchmark_set_is_left_to_inductor(offering, benchmark_sets):
    offering(SLOW)
    assert repeats_of(benchmark_sets, 112) == {None}


def test_a_benchmark_set_is_timed_cleanly_and_no_memory_is_kept(
    offering, annotating, benchmark_sets
):
    offering(SLOW)
    assert repeats_of(benchmark_sets, 120) == {1, 23}
    assert not benchmark_sets._timers


def repeats_of(benchmark: CleanBenchmark, k: int) -> set[int | None]:
    """The numbers of repeats in the measurements of a compile's choices."""
    repeats: set[int | None] = set()

    def on_feedback(timings: dict[Any, float], *_: Any) -> None:
        measured = [benchmark.measured.get(choice) for choice in timings]
        repeats.update(None if each is None else each.repeats for each in measured)

    undo = add_feedback(on_feedback)
    try:
        result = compiled(24, 32, k)
    finally:
        undo()
    assert torch.equal(result, torch.full((24, 32), float(k)))
    return repeats


def test_a_timing_error_of_a_benchmark_set_is_counted_by_the_deciders_fallback(
    offering, annotating, benchmark_sets, monkeypatch
):
    offering(SLOW)
    monkeypatch.setattr(CleanBenchmark, "_timer", failing_timer)
    fallback = Fallback()
    benchmark_sets.enable_for_benchmark_sets(fallback)
    with pytest.warns(UserWarning, match="no timer"):
        result = compiled(24, 32, 144)
    assert torch.equal(result, torch.full((24, 32), 144.0))
    assert sum(fallback.counters.fallbacks.values()) == 1


def test_benchmark_sets_are_timed_in_subprocesses_where_those_are_set(
    offering, annotating, monkeypatch
):
    offering(SLOW)
    lengths: list[int] = []

    def counting(cls: Any, choices: Any, *rest: Any, **more: Any) -> dict[Any, float]:
        lengths.append(len(choices))
        return dict.fromkeys(choices, 1.0)

    name = "benchmark_in_sub_process"
    monkeypatch.setattr(AlgorithmSelectorCache, name, classmethod(counting))
    clean_benchmark.enable_for_benchmark_sets(Fallback())
    try:
        with torch._inductor.config.patch(autotune_in_subproc=True):
            compiled(24, 32, 136)
    finally:
        clean_benchmark.disable_for_benchmark_sets()
    assert lengths == [2]


def test_a_collector_that_closes_leaves_it_in_place_for_benchmark_sets(benchmark_sets):
    inside = attributes()
    with MatmulDatasetCollector(clean=True):
        assert attributes() == inside
    assert attributes() == inside
    benchmark_sets.disable_for_benchmark_sets()
    assert all(attributes()[name] is not inside[name] for name in METHODS)
