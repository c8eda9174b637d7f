import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from torch_diode import Candidate, Dataset, MMShape, Timing
from torch_diode.collection.store.journal import DISCARDED, TimingStore
from torch_diode.files.datasets import read_dataset
from torch_diode.types.errors import FileFaultError


def finished(number: int) -> Dataset:
    problem = MMShape("mm", number + 1, 64, 64)
    return Dataset.from_timings([Timing("nvidia-h200", problem, Candidate("aten"), 5.0 + number)])


def problems_in(directory: Path) -> set[int]:
    return {timing.problem.M - 1 for timing in read_dataset(directory)}


def test_a_closed_store_leaves_one_shard_and_nothing_else(tmp_path):
    with TimingStore(tmp_path, {"collected": ("today",)}) as store:
        for number in range(5):
            store.append(finished(number))
    assert [file.suffix for file in tmp_path.iterdir()] == [".parquet"]
    assert problems_in(tmp_path) == set(range(5))
    assert read_dataset(tmp_path).provenance == {"collected": ("today",)}


def test_discarded_samples_are_counted_per_shard_and_survive_a_kill(tmp_path):
    killed = TimingStore(tmp_path)
    killed.append(finished(0), discarded=3)
    killed.append(finished(1), discarded=4)
    killed.abandon()
    with TimingStore(tmp_path) as store:
        store.append(finished(2), discarded=7)
        store.append(finished(3))
    counts = read_dataset(tmp_path).provenance[DISCARDED]
    assert [text.split()[0] for text in counts] == ["7", "7"]


def test_finished_problems_are_known_before_and_after_flushing(tmp_path):
    with TimingStore(tmp_path) as store:
        store.append(finished(0))
        before = store.done()
        store.flush()
        assert store.done() == before == {("nvidia-h200", 0, MMShape("mm", 1, 64, 64))}


def test_an_interrupt_while_a_problem_is_written_loses_nothing(tmp_path, monkeypatch):
    sync = os.fsync

    def interrupted(descriptor: int) -> None:
        monkeypatch.setattr(os, "fsync", sync)
        os.kill(os.getpid(), signal.SIGINT)

    def append_two() -> None:
        with TimingStore(tmp_path) as store:
            store.append(finished(0))
            monkeypatch.setattr(os, "fsync", interrupted)
            store.append(finished(1))

    with pytest.raises(KeyboardInterrupt):
        append_two()
    assert problems_in(tmp_path) == {0, 1}


WRITER = """
import sys
from pathlib import Path
from tests.collection.store.test_journal import finished
from torch_diode.collection.store.journal import TimingStore
store = TimingStore(Path(sys.argv[1]))
for number in range(int(sys.argv[2]), 10**6):
    store.append(finished(number))
    print(number, flush=True)
"""


def start_writer(directory: Path, first: int) -> subprocess.Popen[str]:
    root = Path(__file__).resolve().parents[3]
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(directory), str(first)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
    )


def wait_for(writer: subprocess.Popen[str], count: int) -> int:
    number = -1
    for _ in range(count):
        number = int(writer.stdout.readline())
    return number


def test_a_killed_collector_loses_no_finished_problem(tmp_path):
    writer = start_writer(tmp_path, 0)
    last = wait_for(writer, 7)
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    TimingStore(tmp_path).close()
    numbers = problems_in(tmp_path)
    assert numbers == set(range(max(numbers) + 1)), "nothing lost, nothing twice"
    assert max(numbers) >= last


def test_an_incomplete_record_is_dropped_and_those_before_it_kept(tmp_path):
    writer = start_writer(tmp_path, 0)
    wait_for(writer, 5)
    writer.kill()
    writer.wait()
    journal = next(tmp_path.glob(".journal-*.log"))
    journal.write_bytes(journal.read_bytes()[:-3])
    TimingStore(tmp_path).close()
    numbers = problems_in(tmp_path)
    assert numbers == set(range(len(numbers)))
    assert len(numbers) >= 4


def test_two_collectors_can_share_a_directory(tmp_path):
    other = start_writer(tmp_path, 1000)
    wait_for(other, 3)
    with TimingStore(tmp_path) as store:
        store.append(finished(0))
    wait_for(other, 3)
    other.kill()
    other.wait()
    TimingStore(tmp_path).close()
    numbers = problems_in(tmp_path)
    assert 0 in numbers
    assert numbers - {0} == set(range(1000, max(numbers) + 1))


def test_a_directory_that_cannot_be_created_is_a_clear_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileFaultError, match="file/store"):
        TimingStore(tmp_path / "file" / "store")
