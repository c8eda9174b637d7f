"""`collect` as a person runs it; what `torch_diode.collect` does is tested in tests/toolkit."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.program import inside, told_off, torch_diode
from torch_diode.files.datasets import read_dataset
from torch_diode.hardware import detect

CPU = ("--seed", "42", "--device", "cpu", "collect", "--libraries")
MANY = ("--output", "t.parquet", "--num-shapes", "150", "--max-size", "256")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_tutorials_first_line_makes_a_dataset(folder):
    ended = inside(
        *("--format", "msgpack", "--seed", "42", "--device", "cpu", "collect", "--libraries"),
        *("--output", "tutorial_dataset.msgpack", "--num-shapes", "3", "--max-size", "64"),
        *("--search-space", "EXHAUSTIVE", "--search-mode", "max-autotune", "--log-normal"),
    )
    assert ended.code == 0, ended.err
    assert [p.name for p in folder.iterdir()] == ["tutorial_dataset.msgpack"]
    dataset = read_dataset(folder / "tutorial_dataset.msgpack")
    assert len(dataset.problems) == 3
    assert "aten" in dataset.texts("template")
    assert dataset.texts("method") == ["sweep"]
    assert dataset.texts("status") == ["ok"]
    assert f"Hardware: {detect('cpu').name}" in ended.out
    assert f"Timing: 3 of 3 problems, {len(dataset)} timings" in ended.out


def test_the_options_choose_the_shapes(folder):
    ended = inside(
        *(*CPU, "--output", "out", "--num-shapes", "4", "--operations", "mm", "bmm"),
        *("--dtypes", "float32", "--min-size", "16", "--max-size", "64", "--power-of-two"),
        *("--no-rectangular", "--no-odd-sizes", "--chunk-size", "1", "--layout", "nt"),
        *("--search-mode", "max-autotune-no-cudagraphs"),
    )
    assert ended.code == 0, ended.err
    problems = {timing.problem for timing in read_dataset(folder / "out" / "timings.parquet")}
    assert len(problems) == 4
    for problem in problems:
        assert problem.M == problem.N == problem.K
        assert problem.M in (16, 32, 64)
        assert problem.op in ("mm", "bmm")
        assert (problem.dtype, problem.layout) == ("float32", "nt")


def started(*arguments: str) -> subprocess.Popen[str]:
    """The program in a process that handles Ctrl-C, even where these tests run in the
    background and do not."""
    return subprocess.Popen(
        [sys.executable, "-m", "torch_diode", *arguments],
        env={**os.environ, "TORCH_DIODE": "0"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def wait_for_timings(parts: Path) -> None:
    """Until a few problems are on disk."""
    for _ in range(1200):
        if sum(file.stat().st_size for file in parts.glob(".journal-*")) > 10_000:
            return
        time.sleep(0.05)
    pytest.fail("nothing was collected within a minute")


@pytest.mark.slow
def test_after_ctrl_c_the_same_command_continues(folder):
    with started(*CPU, *MANY) as first:
        wait_for_timings(folder / "t.parquet.parts")
        first.send_signal(signal.SIGINT)
        output, errors = first.communicate(timeout=60)
    assert first.returncode == 130, errors
    assert "the same command continues" in output
    assert "Traceback" not in errors
    assert not (folder / "t.parquet").exists()
    ended = torch_diode(*CPU, *MANY)
    assert ended.returncode == 0, ended.stderr
    assert " problems are done" in ended.stdout
    assert [p.name for p in folder.iterdir()] == ["t.parquet"]
    dataset = read_dataset(folder / "t.parquet")
    assert len(dataset.problems) == 150


def test_a_file_that_may_not_grow_is_a_clear_stop(folder):
    """A quota, or where nothing can be mounted: the system refuses to write on."""
    limited = "import resource, runpy; resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))"
    program = f"{limited}; runpy.run_module('torch_diode', run_name='__main__')"
    ended = subprocess.run(
        [sys.executable, "-c", program, *CPU, *MANY, "--max-size", "32"],
        env={**os.environ, "TORCH_DIODE": "0"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert ended.returncode == 2, ended.stderr
    assert "File too large; all finished problems are kept in" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    ended = inside(*CPU, *MANY, "--max-size", "32")
    assert " problems are done" in ended.out
    dataset = read_dataset(folder / "t.parquet")
    assert len(dataset.problems) == 150


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_lost_timing_process_is_replaced_and_a_killed_collector_leaves_none(folder):
    with started(*CPU, *MANY) as collector:
        wait_for_timings(folder / "t.parquet.parts")
        os.kill(children(collector.pid)[0], signal.SIGKILL)
        output, errors = collector.communicate(timeout=120)
    assert collector.returncode == 0, errors
    assert "1 timing processes were lost (ended by SIGKILL) and replaced" in output
    dataset = read_dataset(folder / "t.parquet")
    assert len(dataset.problems) == 150
    assert dataset.texts("status") == ["ok"]
    with started(*CPU, *MANY, "--overwrite") as collector:
        wait_for_timings(folder / "t.parquet.parts")
        workers = children(collector.pid)
        collector.kill()
    assert workers
    deadline = time.monotonic() + 20
    while any(Path(f"/proc/{pid}").exists() for pid in workers) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not [pid for pid in workers if Path(f"/proc/{pid}").exists()]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--operations", "mmm"], "operations: got 'mmm'; expected one of mm, addmm"),
        (["--min-size", "0"], "min-size: got 0"),
        (["--min-size", "64", "--max-size", "32"], "max-size: got 32"),
        (["--search-space", "ALL"], "search-space: got 'ALL'"),
        (["--method", "guess"], "method: got 'guess'"),
        (["--num-shapes", "0"], "num-shapes: got 0; expected a whole number from 1"),
        (["--workers", "2"], "--workers: got 2; expected one on a CPU"),
        (["--threads", "1", "4000"], "--threads: got 4000; expected at most"),
        (["--processes", "2147483647"], "--processes: got 2147483647; expected at most"),
        (["--log-normal", "--log-normal-m-std", "-1"], "log-normal-m-std: got -1.0"),
        (["--method", "feedback"], "feedback: got the CPU; expected a GPU"),
        (["--min-size", "8", "--max-size", "8", "--num-shapes", "99"], "widen --min-size"),
    ],
)
def test_a_wrong_option_is_one_sentence_and_nothing_is_left(arguments, said, folder):
    assert said in told_off(*CPU, "--output", "t.parquet", *arguments)
    assert not list(folder.iterdir())


def test_an_output_that_cannot_be_written_is_refused(folder):
    (folder / "file").touch()
    assert "file/t.parquet" in told_off(*CPU, "--output", "file/t.parquet")
    assert "got the ending 'csv'" in told_off(*CPU, "--output", "t.csv")
    said = told_off("--format", "json", *CPU, "--output", "t.parquet")
    assert "got the ending .parquet; expected .json" in said
    assert "File name too long" in told_off(*CPU, "--output", "x" * 300 + ".parquet")
    assert told_off(*CPU, "--output", "/proc/t.parquet").startswith("/proc/t.parquet")
    (folder / "t.parquet").touch()
    assert "exists already" in told_off(*CPU, "--output", "t.parquet")
