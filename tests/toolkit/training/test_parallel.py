"""Networks trained by processes of their own, and what is left when one of those ends."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from torch_diode.toolkit.training import parallel as module
from torch_diode.toolkit.training.parallel import Tell, TrainingJob, train_in_parallel
from torch_diode.types.errors import InvalidValueError

pytestmark = pytest.mark.skipif(not module.can_fork(), reason="needs fork, and no GPU in use")


@pytest.fixture(autouse=True)
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)


def writing(path: Path, epochs: int = 2) -> TrainingJob[None]:
    """A job that leaves its process's number, epoch by epoch."""

    def train(tell: Tell) -> None:
        for epoch in range(1, epochs + 1):
            with path.open("a", encoding="utf-8") as file:
                file.write(f"{os.getpid()}\n")
            tell({"epoch": epoch})

    return TrainingJob(path.name, epochs, train)


def failing(job: TrainingJob[None], fail: Callable[[], object]) -> TrainingJob[None]:
    def train(tell: Tell) -> None:
        job.train(tell)
        fail()

    return TrainingJob(job.name, job.epochs, train)


def test_each_has_a_process_of_its_own(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in "abc"]
    train_in_parallel([writing(path) for path in paths])
    numbers = [set(path.read_text().split()) for path in paths]
    assert all(len(found) == 1 for found in numbers)
    assert len(set.union(*numbers)) == 3
    assert str(os.getpid()) not in set.union(*numbers)


def test_one_job_needs_no_process(tmp_path: Path) -> None:
    train_in_parallel([writing(tmp_path / "a")])
    assert not (tmp_path / "a").exists(), "whoever asked trains it"


def run_out() -> None:
    raise RuntimeError("out of memory\nand much more")


def test_one_that_fails_or_is_killed_leaves_the_others_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs = [
        failing(writing(tmp_path / "full"), run_out),
        failing(writing(tmp_path / "killed"), lambda: os.kill(os.getpid(), signal.SIGKILL)),
        failing(writing(tmp_path / "ended"), lambda: os._exit(9)),
        writing(tmp_path / "well", epochs=5),
    ]
    train_in_parallel(jobs)
    assert len((tmp_path / "well").read_text().split()) == 5
    said = capsys.readouterr().out
    assert "full: stopped (out of memory)" in said
    assert "much more" not in said
    assert "killed: stopped (killed by SIGKILL)" in said
    assert "ended: stopped (exit 9)" in said
    assert "well: stopped" not in said


def refuse() -> None:
    raise InvalidValueError("state: got other data; expected the same")


def test_what_is_wrong_with_the_question_ends_all_at_once(tmp_path: Path) -> None:
    waiting = failing(writing(tmp_path / "long"), lambda: time.sleep(600))
    with pytest.raises(InvalidValueError, match="other data"):
        train_in_parallel([failing(writing(tmp_path / "refused"), refuse), waiting])
    gone(tmp_path / "long")


def gone(path: Path) -> None:
    """Whether the process that wrote there is no more; it may not have come to write."""
    for number in path.read_text().split() if path.exists() else ():
        with pytest.raises(ProcessLookupError):
            os.kill(int(number), 0)


def test_ctrl_c_leaves_no_process_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"

    def interrupted(*_: object) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "_hear", interrupted)
    long = failing(writing(path), lambda: time.sleep(600))
    with pytest.raises(KeyboardInterrupt):
        train_in_parallel([long, failing(writing(tmp_path / "b"), lambda: time.sleep(600))])
    gone(path)
    gone(tmp_path / "b")


def test_where_it_cannot_be_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    train_in_parallel([writing(tmp_path / "a"), writing(tmp_path / "b")])
    assert "2 networks, one after the other" in capsys.readouterr().out
    assert not (tmp_path / "a").exists()
