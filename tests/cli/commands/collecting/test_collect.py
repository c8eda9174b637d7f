"""`collect` as a person runs it. On the CPU there is one candidate, ATen, and all the rest."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.program import refusal, torch_diode
from torch_diode.files.datasets import read_dataset
from torch_diode.hardware import detect

CPU = ("--seed", "42", "--device", "cpu", "collect")
SMALL = ("--max-size", "64")
MANY = ("--output", "t.parquet", "--num-shapes", "150", "--max-size", "256")


@pytest.mark.parametrize("form", ["msgpack", "json", "parquet"])
def test_the_tutorials_first_line_makes_a_dataset(form, tmp_path):
    ended = torch_diode(
        *("--format", form, "--seed", "42", "--device", "cpu", "collect"),
        *("--output", f"tutorial_dataset.{form}", "--num-shapes", "3"),
        *("--search-space", "EXHAUSTIVE", "--search-mode", "max-autotune", "--log-normal"),
        *SMALL,
        cwd=tmp_path,
    )
    assert ended.returncode == 0, ended.stderr
    assert [p.name for p in tmp_path.iterdir()] == [f"tutorial_dataset.{form}"]
    dataset = read_dataset(tmp_path / f"tutorial_dataset.{form}")
    assert len(dataset.problems) == 3
    assert dataset.texts("template") == ["aten"]
    assert dataset.texts("method") == ["sweep"]
    assert dataset.texts("status") == ["ok"]
    assert f"Hardware: {detect('cpu').name}" in ended.stdout
    assert "3 of 3 problems, 3 timings" in ended.stdout


def test_the_options_choose_the_shapes(tmp_path):
    ended = torch_diode(
        *(*CPU, "--output", "out", "--num-shapes", "4", "--operations", "mm", "bmm"),
        *("--dtypes", "float32", "--min-size", "16", "--max-size", "64", "--power-of-two"),
        *("--no-rectangular", "--no-odd-sizes", "--chunk-size", "1", "--layout", "nt"),
        cwd=tmp_path,
    )
    assert ended.returncode == 0, ended.stderr
    problems = {timing.problem for timing in read_dataset(tmp_path / "out" / "timings.parquet")}
    assert len(problems) == 4
    for problem in problems:
        assert problem.M == problem.N == problem.K
        assert problem.M in (16, 32, 64)
        assert problem.op in ("mm", "bmm")
        assert (problem.dtype, problem.layout) == ("float32", "nt")


def test_the_same_seed_draws_the_same_problems(tmp_path):
    for name in ("a.parquet", "b.parquet"):
        torch_diode(*CPU, "--output", name, "--num-shapes", "3", *SMALL, cwd=tmp_path)
    first, second = (
        {timing.problem for timing in read_dataset(tmp_path / name)}
        for name in ("a.parquet", "b.parquet")
    )
    assert first == second


def started(cwd: Path, *arguments: str) -> subprocess.Popen[str]:
    """The program in a process of its own, which hears Ctrl-C even where these tests run in the
    background and do not."""
    return subprocess.Popen(
        [sys.executable, "-m", "torch_diode", *arguments],
        cwd=cwd,
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
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_after_a_kill_the_same_command_continues(end, tmp_path):
    with started(tmp_path, *CPU, *MANY) as first:
        wait_for_timings(tmp_path / "t.parquet.parts")
        first.send_signal(end)
        output, errors = first.communicate(timeout=60)
    assert not (tmp_path / "t.parquet").exists()
    if end == signal.SIGINT:
        assert first.returncode == 130, errors
        assert "the same command continues" in output
        assert "Traceback" not in errors
    ended = torch_diode(*CPU, *MANY, cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert " problems are done" in ended.stdout
    assert [p.name for p in tmp_path.iterdir()] == ["t.parquet"]
    dataset = read_dataset(tmp_path / "t.parquet")
    assert len(dataset) == len(dataset.problems) == 150


@pytest.mark.slow
def test_other_settings_on_the_same_parts_are_refused(tmp_path):
    with started(tmp_path, *CPU, *MANY) as first:
        wait_for_timings(tmp_path / "t.parquet.parts")
        first.kill()
    said = refusal(*CPU, *MANY, "--num-shapes", "61", cwd=tmp_path)
    assert "collected with num-shapes 150; got 61; give the same options" in said
    said = refusal("--seed", "43", *CPU[2:], *MANY, cwd=tmp_path)
    assert "collected with seed 42; got 43" in said


@pytest.fixture
def small_disk(tmp_path):
    """A real file system of a few pages."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=160k", "tmpfs", str(disk)]
    if not shutil.which("mount") or subprocess.call(mount, stderr=subprocess.DEVNULL):
        pytest.skip("mounting is not permitted here")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_full_disk_is_a_clear_stop_and_with_more_space_the_same_command_continues(small_disk):
    output = small_disk / "t.parquet"
    command = (*CPU, "--output", output, "--num-shapes", "60", "--max-size", "32")
    ended = torch_diode(*command, cwd=small_disk)
    assert ended.returncode == 2
    assert len(ended.stderr.splitlines()) == 1
    assert "No space left on device; all finished problems are kept in" in ended.stderr
    assert "free some space and run the same command again" in ended.stderr
    assert not output.exists()
    grown = ["mount", "-o", "remount,size=4m", str(small_disk)]
    subprocess.run(grown, check=True)
    ended = torch_diode(*command, cwd=small_disk)
    assert ended.returncode == 0, ended.stderr
    assert " problems are done" in ended.stdout
    assert [p.name for p in small_disk.iterdir()] == ["t.parquet"]
    dataset = read_dataset(output)
    assert len(dataset) == len(dataset.problems) == 60


def test_a_file_that_may_not_grow_is_a_clear_stop_too(tmp_path):
    """A quota, or where nothing can be mounted: the system refuses to write on."""
    limited = "import resource, runpy; resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))"
    program = f"{limited}; runpy.run_module('torch_diode', run_name='__main__')"
    ended = subprocess.run(
        [sys.executable, "-c", program, *CPU, *MANY, "--max-size", "32"],
        cwd=tmp_path,
        env={**os.environ, "TORCH_DIODE": "0"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert ended.returncode == 2, ended.stderr
    assert "File too large; all finished problems are kept in" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    ended = torch_diode(*CPU, *MANY, "--max-size", "32", cwd=tmp_path)
    assert " problems are done" in ended.stdout
    dataset = read_dataset(tmp_path / "t.parquet")
    assert len(dataset) == len(dataset.problems) == 150


def test_several_processes_make_one_output(tmp_path):
    ended = torch_diode(*CPU, *MANY, "--workers", "3", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert f"on 3 × {detect('cpu').name}" in ended.stdout
    assert [p.name for p in tmp_path.iterdir()] == ["t.parquet"]
    dataset = read_dataset(tmp_path / "t.parquet")
    assert len(dataset) == len(dataset.problems) == 150


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_lost_timing_process_is_replaced_and_a_killed_collector_leaves_none(tmp_path):
    with started(tmp_path, *CPU, *MANY, "--workers", "2") as collector:
        wait_for_timings(tmp_path / "t.parquet.parts")
        os.kill(children(collector.pid)[0], signal.SIGKILL)
        output, errors = collector.communicate(timeout=120)
    assert collector.returncode == 0, errors
    assert "1 timing processes were lost (ended by SIGKILL) and replaced" in output
    dataset = read_dataset(tmp_path / "t.parquet")
    assert len(dataset) == len(dataset.problems) == 150
    assert dataset.texts("status") == ["ok"]
    with started(tmp_path, *CPU, *MANY, "--workers", "2", "--overwrite") as collector:
        wait_for_timings(tmp_path / "t.parquet.parts")
        workers = children(collector.pid)
        collector.kill()
    assert workers
    deadline = time.monotonic() + 20
    while any(Path(f"/proc/{pid}").exists() for pid in workers) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not [pid for pid in workers if Path(f"/proc/{pid}").exists()]


@pytest.mark.skipif(os.path.exists("/dev/nvidia0"), reason="there is a GPU")  # noqa: PTH110
@pytest.mark.parametrize("device", [(), ("--device", "cuda:1")])
def test_without_a_gpu_it_says_what_is_missing(device, tmp_path):
    said = refusal(*device, "collect", "--output", "t.parquet", cwd=tmp_path)
    assert "this machine has no such device" in said
    assert "diode_datasets/matmul" in said
    assert "--device cpu" in said
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--operations", "mmm"], "operations: got 'mmm'; expected one of mm, addmm"),
        (["--dtypes", "float33"], "dtypes: got 'float33'"),
        (["--min-size", "0"], "min-size: got 0"),
        (["--min-size", "64", "--max-size", "32"], "max-size: got 32"),
        (["--max-size", "-5"], "max-size: got -5"),
        (["--search-space", "ALL"], "search-space: got 'ALL'"),
        (["--search-mode", "fast"], "search-mode: got 'fast'"),
        (["--method", "guess"], "method: got 'guess'"),
        (["--layout", "xx"], "layout: got 'xx'"),
        (["--num-shapes", "0"], "num-shapes: got 0; expected a whole number from 1"),
        (["--chunk-size", "0"], "chunk-size: got 0"),
        (["--workers", "-1"], "workers: got -1"),
        (["--processes", "-1"], "processes: got -1"),
        (["--log-normal", "--log-normal-m-std", "-1"], "log-normal-m-std: got -1.0"),
        (["--log-normal", "--log-normal-k-mean", "nan"], "log-normal-k-mean: got nan"),
        (["--dtypes", "int8"], "dtypes: got 'int8'"),
        (["--method", "feedback"], "feedback: got the CPU; expected a GPU"),
        (["--min-size", "8", "--max-size", "8", "--num-shapes", "99"], "widen --min-size"),
    ],
)
def test_a_wrong_option_is_one_sentence_and_nothing_is_left(arguments, said, tmp_path):
    assert said in refusal(*CPU, "--output", "t.parquet", *arguments, cwd=tmp_path)
    assert not list(tmp_path.iterdir())


def test_an_output_that_cannot_be_is_refused(tmp_path):
    (tmp_path / "file").touch()
    assert "file/t.parquet" in refusal(*CPU, "--output", "file/t.parquet", cwd=tmp_path)
    assert "got the ending 'csv'" in refusal(*CPU, "--output", "t.csv", cwd=tmp_path)
    said = refusal("--format", "json", *CPU, "--output", "t.parquet", cwd=tmp_path)
    assert "got the ending .parquet; expected .json" in said
    long = "x" * 300 + ".parquet"
    assert "File name too long" in refusal(*CPU, "--output", long, cwd=tmp_path)
    said = refusal(*CPU, "--output", "/proc/t.parquet", cwd=tmp_path)
    assert said.startswith("/proc/t.parquet")
    (tmp_path / "t.parquet").touch()
    assert "exists already" in refusal(*CPU, "--output", "t.parquet", cwd=tmp_path)
