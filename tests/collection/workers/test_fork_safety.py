"""Functions called in a forked process."""

import os
import signal

import pytest
import torch

from torch_diode.collection.workers.fork_safety import can_fork, run_in_subprocess
from torch_diode.types.errors import InvalidValueError, MissingPartError

pytestmark = pytest.mark.skipif(not can_fork(), reason="needs fork, and no GPU in use")


def refuse() -> None:
    raise InvalidValueError("chip: got none; expected one")


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def fail() -> None:
    raise RuntimeError("no such GPU")


def test_the_function_runs_in_another_process():
    assert run_in_subprocess(os.getpid) != os.getpid()


def test_with_a_gpu_in_use_the_function_runs_here(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    assert run_in_subprocess(os.getpid) == os.getpid()


def test_errors_are_raised_in_the_caller():
    with pytest.raises(InvalidValueError, match="chip: got none"):
        run_in_subprocess(refuse)
    with pytest.raises(RuntimeError, match="no such GPU"):
        run_in_subprocess(fail)


def test_a_killed_process_is_a_clear_error():
    with pytest.raises(MissingPartError, match="has ended"):
        run_in_subprocess(die)
