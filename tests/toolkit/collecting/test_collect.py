"""`collect` as a program calls it, on the CPU."""

import os
import signal
import subprocess
import sys

import pytest

from torch_diode import MMShape, OperationShapeSet, Progress, ShapeSampling
from torch_diode.collection.plan import libraries
from torch_diode.collection.workers.fork_safety import run_in_subprocess
from torch_diode.files.datasets import read_dataset
from torch_diode.files.shape_sets import write_shapes
from torch_diode.hardware import detect, known
from torch_diode.toolkit.collecting.collect import CollectionResult, CollectOptions, collect
from torch_diode.toolkit.collecting.run import default_lists
from torch_diode.types.errors import FileFaultError, InvalidValueError, MissingPartError

CPU = CollectOptions(device="cpu", libraries_only=True, seed=42)
SMALL = ShapeSampling(12, max_size=64)
PROBLEMS = (
    MMShape("mm", 32, 48, 64, dtype="float32", transpose_b=True),
    MMShape("addmm", 33, 49, 65, dtype="float32", bias="matrix"),
    MMShape("mm", 32, 48, 64, dtype="float64"),
)


def messages(reports: list[Progress]) -> str:
    return "\n".join(report.message for report in reports)


def libraries_of(result: CollectionResult) -> list[str]:
    """The libraries that this CPU has for the problems."""
    rule = libraries(detect("cpu"))
    return sorted({c.template for problem in result.problems for c in rule(problem)})


def interrupt_after(count: int):
    """A progress callback that interrupts when so many problems are done."""

    def report(progress: Progress) -> None:
        if progress.stage == "Timing" and progress.done == count:
            raise KeyboardInterrupt

    return report


def test_drawn_problems_are_timed_and_progress_is_reported(tmp_path):
    reports: list[Progress] = []
    result = collect(tmp_path / "t.parquet", SMALL, CPU, progress=reports.append)
    assert result.path == tmp_path / "t.parquet"
    assert set(result.problems) == {timing.problem for timing in read_dataset(result.path)}
    assert len(result.dataset.problems) == len(result.problems) == 12
    assert result.dataset.texts("template") == libraries_of(result)
    told = result.dataset.provenance
    assert told["onednn"]
    assert told["discarded samples"] == ("0",)
    assert told["busy CPU"] == ("accepted",), "as the tests do"
    assert (result.wrong, result.left_out, result.notes, result.reused) == (0, (), (), False)
    assert result.dataset.texts("hardware") == [detect("cpu").name]
    timing = [report for report in reports if report.stage == "Timing"]
    assert [report.done for report in timing] == list(range(13))
    assert {(report.total, report.unit) for report in timing} == {(12, "problems")}
    assert timing[-1].values["timings"] == len(result.dataset)
    assert "12 problems in" in messages(reports)


def test_problems_may_be_a_sequence_a_shape_set_or_its_file(tmp_path):
    two = PROBLEMS[:2]
    write_shapes(OperationShapeSet.of(two), tmp_path / "shapes.json")
    given = ([*two, two[0]], OperationShapeSet.of(two), tmp_path / "shapes.json")
    for number, problems in enumerate(given):
        result = collect(tmp_path / str(number), problems, CPU)
        assert result.path.name == "timings.parquet"
        assert set(result.problems) == set(two)


def test_an_interrupt_keeps_the_finished_problems_and_the_same_call_continues(tmp_path):
    reports: list[Progress] = []
    stop = interrupt_after(5)

    def report(progress):
        reports.append(progress)
        stop(progress)

    with pytest.raises(KeyboardInterrupt):
        collect(tmp_path / "t.parquet", SMALL, CPU, progress=report)
    assert "t.parquet.parts: all finished problems kept" in messages(reports)
    reports.clear()
    result = collect(tmp_path / "t.parquet", SMALL, CPU, progress=reports.append)
    assert "t.parquet.parts: 5 problems are done" in messages(reports)
    assert [r.done for r in reports if r.stage == "Timing"] == list(range(5, 13))
    assert len(result.dataset.problems) == 12
    assert [path.name for path in tmp_path.iterdir()] == ["t.parquet"]


def test_a_killed_process_loses_no_finished_problem(tmp_path):
    program = """
import os, signal
import torch_diode
from torch_diode.collection.plan import libraries
from torch_diode.collection.sampling_options import ShapeSampling

def report(progress):
    if progress.done == 7:
        os.kill(os.getpid(), signal.SIGKILL)

options = torch_diode.CollectOptions(device="cpu", libraries_only=True, seed=42)
torch_diode.collect("t.parquet", ShapeSampling(12, max_size=64), options, progress=report)
"""
    ended = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=False)
    assert ended.returncode == -signal.SIGKILL
    reports: list[Progress] = []
    result = collect(tmp_path / "t.parquet", SMALL, CPU, progress=reports.append)
    assert "7 problems are done" in messages(reports)
    assert len(result.dataset.problems) == 12


@pytest.mark.parametrize(
    ("sampling", "options", "difference"),
    [
        (ShapeSampling(13, max_size=64), CPU, "num-shapes 12; got 13"),
        (SMALL, CollectOptions(device="cpu", libraries_only=True, seed=43), "seed 42; got 43"),
    ],
)
def test_an_unfinished_output_is_continued_only_with_its_own_settings(
    sampling, options, difference, tmp_path
):
    with pytest.raises(KeyboardInterrupt):
        collect(tmp_path / "t.parquet", SMALL, CPU, progress=interrupt_after(2))
    with pytest.raises(FileFaultError, match=f"collected with {difference}; give the same options"):
        collect(tmp_path / "t.parquet", sampling, options)


def test_a_finished_output_is_accepted_replaced_or_refused(tmp_path):
    output = tmp_path / "t.parquet"
    collect(output, SMALL, CPU)
    before = output.read_bytes()
    left_by_a_kill = tmp_path / "t.parquet.parts"
    left_by_a_kill.mkdir()
    result = collect(output, SMALL, CPU)
    assert result.reused
    assert len(result.dataset.problems) == 12
    assert output.read_bytes() == before
    assert not left_by_a_kill.exists()
    with pytest.raises(FileFaultError, match="not known to be collected with these options"):
        collect(output, ShapeSampling(3, max_size=64), CPU)
    output.write_text("not a dataset")
    with pytest.raises(FileFaultError, match="exists already, and is not known"):
        collect(output, SMALL, CPU)
    again = CollectOptions(device="cpu", libraries_only=True, seed=42, overwrite=True)
    assert not collect(output, SMALL, again).reused


TWO_CORES = pytest.mark.skipif(detect("cpu").units < 2, reason="needs two cores")


@TWO_CORES
def test_every_problem_is_timed_once_per_thread_count(tmp_path):
    reports: list[Progress] = []
    options = CollectOptions(device="cpu", libraries_only=True, threads=(2, 1), chunk_size=2)
    result = collect(tmp_path / "t.parquet", SMALL, options, progress=reports.append)
    assert "12 problems in" in messages(reports)
    for text in ("2 threads", "1 thread"):
        assert f"on 1 × {detect('cpu').name}, {text}\n" in messages(reports) + "\n"
    assert len(result.problems) == 12
    assert len(result.dataset.problems) == 24
    timed = {(timing.problem, timing.threads) for timing in result.dataset}
    assert timed == {(p, n) for p in result.problems for n in (1, 2)}
    assert {(r.total, r.unit) for r in reports if r.stage == "Timing"} == {(24, "problems")}


@TWO_CORES
def test_an_interrupted_collection_continues_at_its_thread_count(tmp_path):
    options = CollectOptions(device="cpu", libraries_only=True, seed=42, threads=(1, 2))
    with pytest.raises(KeyboardInterrupt):
        collect(tmp_path / "t.parquet", SMALL, options, progress=interrupt_after(15))
    with pytest.raises(FileFaultError, match=r"with threads \[1, 2\]; got \[1\]"):
        collect(
            tmp_path / "t.parquet",
            SMALL,
            CollectOptions(device="cpu", libraries_only=True, seed=42, threads=(1,)),
        )
    reports: list[Progress] = []
    result = collect(tmp_path / "t.parquet", SMALL, options, progress=reports.append)
    assert "15 problems are done" in messages(reports)
    assert "1 thread\n" not in messages(reports)
    assert len(result.dataset.problems) == 24


def test_wrong_threads_are_refused():
    with pytest.raises(InvalidValueError, match="threads: got 0"):
        CollectOptions(device="cpu", libraries_only=True, threads=(0,))
    with pytest.raises(InvalidValueError, match="--threads: got 2 for cuda:0; expected none"):
        CollectOptions(device="cuda:0", threads=(2,))


@pytest.mark.parametrize(
    ("problem", "reason"),
    [
        (PROBLEMS[2], "got float64 to float64"),
        (MMShape("mm", 2**23, 2**23, 64, dtype="float32"), "leave it out or lower --max-size"),
    ],
)
def test_a_problem_that_cannot_be_timed_is_refused(problem, reason, tmp_path):
    with pytest.raises(InvalidValueError, match=reason):
        collect(tmp_path / "t.parquet", [problem], CPU)
    assert not list(tmp_path.iterdir())


def test_machines_that_share_the_work_sweep(tmp_path):
    shared = CollectOptions(device="cpu", libraries_only=True, method="feedback", ray="auto")
    with pytest.raises(InvalidValueError, match="got --method feedback; expected sweep"):
        collect(tmp_path / "t.json", SMALL, shared)


@pytest.mark.skipif(os.path.exists("/dev/nvidia0"), reason="there is a GPU")  # noqa: PTH110
@pytest.mark.parametrize("device", [None, "cuda:1"])
def test_without_a_gpu_the_error_names_the_alternatives(device, tmp_path):
    with pytest.raises(MissingPartError) as refused:
        collect(tmp_path / "t.json", SMALL, CollectOptions(device=device))
    for words in ("this machine has no such device", "--device cpu", "diode_datasets/matmul"):
        assert words in str(refused.value)


def test_inductors_lists_come_back_from_another_process():
    pytest.importorskip("triton")
    problem = MMShape("mm", 256, 256, 256)
    lists = run_in_subprocess(default_lists, [problem], known("nvidia-h200"))
    assert len(lists[problem]) > 10
