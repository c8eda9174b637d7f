"""Inductor's real lowering and feedback, with given times."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch._inductor import select_algorithm as select

from torch_diode.collection.feedback_timings import CollectionMode
from torch_diode.files.datasets import read_dataset
from torch_diode.integration.autotune.feedback import MatmulDatasetCollector, candidate_of
from torch_diode.integration.capture.fake_gpu import Input, lower
from torch_diode.types.errors import InvalidValueError
from torch_diode.types.problem import MMShape
from torch_diode.types.shapes import OperationShapeSet

CONFIG = {"max_autotune": True, "max_autotune_gemm_backends": "ATEN,TRITON"}


@pytest.fixture
def timed(monkeypatch: pytest.MonkeyPatch, fake_h200: None) -> Iterator[None]:
    """Vendor kernels take 2 ms, Triton's 1 ms for every warp; the largest tile cannot run."""

    def lookup(self: Any, choices: list[Any], *args: Any, **kwargs: Any) -> dict[Any, float]:
        return {choice: milliseconds(choice) for choice in choices}

    monkeypatch.setattr(select.AlgorithmSelectorCache, "lookup", lookup)
    monkeypatch.setattr(select.AlgorithmSelectorCache, "make_precompile_fn", lambda *_, **__: dict)
    return


def milliseconds(choice: Any) -> float:
    if not isinstance(choice, select.TritonTemplateCaller):
        return 2.0
    candidate = candidate_of(choice)
    if candidate.config.block_m * candidate.config.block_n >= 128 * 128:
        return float("inf")
    return float(candidate.config.num_warps)


def autotuned(op: str, *shapes: tuple[int, ...]) -> None:
    lower(getattr(torch, op), [Input(shape) for shape in shapes], CONFIG)


@pytest.mark.parametrize(
    ("op", "shapes", "problem"),
    [
        ("mm", [(256, 512), (512, 384)], MMShape("mm", 256, 384, 512)),
        ("addmm", [(384,), (256, 512), (512, 384)], MMShape("addmm", 256, 384, 512)),
        ("bmm", [(8, 128, 64), (8, 64, 96)], MMShape("bmm", 128, 96, 64, B=8)),
        (
            "baddbmm",
            [(8, 128, 96), (8, 128, 64), (8, 64, 96)],
            MMShape("baddbmm", 128, 96, 64, B=8),
        ),
    ],
)
@pytest.mark.usefixtures("timed")
def test_inductors_timings_become_a_dataset_that_can_be_saved(op, shapes, problem, tmp_path):
    with MatmulDatasetCollector() as collector:
        autotuned(op, *shapes)
    dataset = collector.dataset()
    assert collector.fallback.counters.fallbacks == {}
    assert len(collector) == 1
    assert {timing.problem for timing in dataset} == {problem}
    assert dataset.texts("method") == ["feedback"]
    assert dataset.texts("hardware") == ["nvidia-h200"]
    assert len(dataset) > 10
    by_template = {timing.candidate.template: timing for timing in dataset}
    assert by_template["aten"].time_us == 2000.0
    collector.save(tmp_path / "found.parquet")
    assert read_dataset(tmp_path / "found.parquet") == dataset
    for timing in dataset:
        config = timing.candidate.config
        if config is not None:
            took = 1000.0 * config.num_warps
            assert timing.time_us == (took if timing.status == "ok" else None)


@pytest.mark.usefixtures("timed")
def test_only_its_own_hook_is_removed():
    names: list[str] = []

    def other(timings: Any, name: str, *_: Any) -> None:
        names.append(name)

    select.add_feedback_saver(other)
    try:
        with MatmulDatasetCollector() as outer:
            with MatmulDatasetCollector() as inner:
                autotuned("mm", (256, 512), (512, 384))
            autotuned("mm", (256, 512), (512, 128))
        autotuned("mm", (256, 512), (512, 256))
        assert (len(inner), len(outer), len(names)) == (1, 2, 3)
        assert select.get_algorithm_selector_cache().feedback_saver_fns == [other]
    finally:
        select.get_algorithm_selector_cache().feedback_saver_fns.remove(other)


@pytest.mark.usefixtures("timed")
def test_an_error_in_the_collector_does_not_fail_the_compile(monkeypatch):
    def broken(*_: Any) -> None:
        raise RuntimeError("no such candidate")

    monkeypatch.setattr("torch_diode.integration.autotune.feedback.candidate_of", broken)
    with pytest.warns(UserWarning, match="no such candidate"), MatmulDatasetCollector() as found:
        autotuned("mm", (256, 512), (512, 384))
    assert len(found) == 0


@pytest.mark.slow
@pytest.mark.parametrize(("bias", "dtype"), [(False, torch.float32), (True, torch.bfloat16)])
def test_a_frozen_linear_on_a_cpu_is_recorded_with_its_threads(bias, dtype):
    """A real compile: Inductor offers a library and its C++ template, and times both."""
    from torch._inductor import config

    frozen = {"max_autotune": True, "max_autotune_gemm_backends": "ATEN,CPP", "freezing": True}
    torch.compiler.reset()
    linear = torch.nn.Linear(192, 160, bias, dtype=dtype).eval()
    with MatmulDatasetCollector() as collector, config.patch(frozen), torch.no_grad():
        torch.compile(linear)(torch.randn(6, 192, dtype=dtype))
    assert not collector.fallback.counters.abstentions
    timings = list(collector.dataset())
    (problem,) = {timing.problem for timing in timings}
    sizes = (problem.M, problem.N, problem.K, problem.layout, problem.dtype)
    assert sizes == (6, 160, 192, "nt", str(dtype).removeprefix("torch."))
    templates = {timing.candidate.template for timing in timings}
    assert len(templates) == 2
    assert "cpp::gemm" in templates
    assert {timing.threads for timing in timings} == {torch.get_num_threads()}


@pytest.mark.slow
def test_a_collector_compiles_problems_itself_and_is_started_and_stopped(tmp_path):
    collector = MatmulDatasetCollector()
    collector.start_collection()
    collector.collect_data(mode=CollectionMode.RANDOM, device="cpu", num_shapes=1, max_size=64)
    collector.stop_collection()
    drawn = MMShape("mm", 32, 48, 64, dtype="float32", transpose_b=True)
    shapes = OperationShapeSet.of([drawn])
    mode = CollectionMode.OPERATION_SHAPE_SET
    dataset = collector.collect_data(mode=mode, shapes=shapes, device="cpu")
    assert len(dataset.problems) == len(collector) == 2
    assert len(collector.to_table().lookup(dataset[0].hardware, drawn)) == 1
    collector.save_to_file(tmp_path / "collected.json")
    assert read_dataset(tmp_path / "collected.json") == collector.get_dataset()
    bmm = OperationShapeSet.of([MMShape("bmm", 8, 8, 8, B=2)])
    with pytest.raises(InvalidValueError, match="on a CPU Inductor times linears alone"):
        collector.collect_data(mode=mode, shapes=bmm, device="cpu")
    assert collector._open is None
