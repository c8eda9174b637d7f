import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from torch_diode.toolkit.progress import Progress
from torch_diode.toolkit.training import parallel as module
from torch_diode.toolkit.training.parallel import EpochCallback, TrainingJob, train_in_parallel
from torch_diode.types.errors import InvalidValueError

pytestmark = pytest.mark.skipif(not module.can_fork(), reason="needs fork, and no GPU in use")


@pytest.fixture(autouse=True)
def two_cores(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 2)


def run(jobs: list[TrainingJob[None]]) -> list[Progress]:
    """Train in parallel; the progress reports."""
    reports: list[Progress] = []
    train_in_parallel(jobs, reports.append)
    return reports


def text_of(reports: list[Progress]) -> str:
    return "\n".join(report.message for report in reports)


def writing(path: Path, epochs: int = 2) -> TrainingJob[None]:
    """A job that writes its process id in every epoch."""

    def train(report: EpochCallback) -> None:
        for epoch in range(1, epochs + 1):
            with path.open("a", encoding="utf-8") as file:
                file.write(f"{os.getpid()}\n")
            report({"epoch": epoch})

    return TrainingJob(path.name, epochs, train)


def failing(job: TrainingJob[None], fail: Callable[[], object]) -> TrainingJob[None]:
    def train(report: EpochCallback) -> None:
        job.train(report)
        fail()

    return TrainingJob(job.name, job.epochs, train)


def test_each_network_has_a_process_of_its_own(tmp_path):
    paths = [tmp_path / name for name in "abc"]
    reports = run([writing(path) for path in paths])
    assert text_of(reports).strip() == "3 networks, 2 side by side"
    assert (reports[-1].stage, reports[-1].done, reports[-1].total) == ("Training", 6, 6)
    numbers = [set(path.read_text().split()) for path in paths]
    assert all(len(found) == 1 for found in numbers)
    assert len(set.union(*numbers)) == 3
    assert str(os.getpid()) not in set.union(*numbers)


def run_out() -> None:
    raise RuntimeError("out of memory\nand much more")


def test_one_that_fails_or_is_killed_leaves_the_others_alone(tmp_path):
    jobs = [
        failing(writing(tmp_path / "full"), run_out),
        failing(writing(tmp_path / "killed"), lambda: os.kill(os.getpid(), signal.SIGKILL)),
        failing(writing(tmp_path / "ended"), lambda: os._exit(9)),
        writing(tmp_path / "well", epochs=5),
    ]
    text = text_of(run(jobs))
    assert len((tmp_path / "well").read_text().split()) == 5
    assert "full: stopped (RuntimeError: out of memory)" in text
    assert "much more" not in text
    assert "killed: stopped (ended by SIGKILL)" in text
    assert "ended: stopped (ended with exit code 9)" in text
    assert "well: stopped" not in text


def refuse() -> None:
    raise InvalidValueError("state: got other data; expected the same")


def test_an_error_of_the_user_ends_all(tmp_path):
    waiting = failing(writing(tmp_path / "long"), lambda: time.sleep(600))
    with pytest.raises(InvalidValueError, match="other data"):
        run([failing(writing(tmp_path / "refused"), refuse), waiting])
    assert_ended(tmp_path / "long")


def assert_ended(path: Path) -> None:
    """Assert that the process that wrote the file has ended, if it came to write."""
    for number in path.read_text().split() if path.exists() else ():
        with pytest.raises(ProcessLookupError):
            os.kill(int(number), 0)


def test_ctrl_c_leaves_no_process_behind(tmp_path, monkeypatch):
    path = tmp_path / "a"

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(module._JointReport, "epoch", interrupted)
    long = failing(writing(path), lambda: time.sleep(600))
    with pytest.raises(KeyboardInterrupt):
        run([long, failing(writing(tmp_path / "b"), lambda: time.sleep(600))])
    assert_ended(path)
    assert_ended(tmp_path / "b")


def test_without_fork_nothing_is_started(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    reports = run([writing(tmp_path / "a"), writing(tmp_path / "b")])
    assert text_of(reports) == "2 networks, one after the other"
    assert not (tmp_path / "a").exists()
