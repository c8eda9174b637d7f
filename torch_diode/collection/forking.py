"""Processes forked from one that holds no GPU, since what is forked from one that does cannot use
it."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import TypeVar

import torch

from torch_diode.types.errors import DiodeError, MissingPartError

# Importing Inductor asks whether there is a GPU. Asked of CUDA itself, that would leave every
# process forked afterwards without the use of it; asked of NVML, it does not.
os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")

Result = TypeVar("Result")


def holds_gpu() -> bool:
    """Whether this process has used one."""
    return bool(torch.cuda.is_initialized() or torch.xpu.is_initialized())


def can_fork() -> bool:
    """Whether a process forked now could do all this one can; elsewhere than on Linux, forking is
    not safe with every library."""
    return sys.platform == "linux" and not holds_gpu()


def apart(ask: Callable[[], Result]) -> Result:
    """What a function returns or raises, called in a process of its own, so that this one holds no
    GPU afterwards; called here where that cannot be."""
    if not can_fork():
        return ask()
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(ask, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        found = ours.recv()
    except EOFError:
        raise MissingPartError("device: got a process that ended when asked for it") from None
    finally:
        process.join()
        ours.close()
    if isinstance(found, BaseException):
        raise found
    answer: Result = found
    return answer


def _answer(ask: Callable[[], object], connection: Connection) -> None:
    try:
        connection.send(ask())
    except (DiodeError, RuntimeError, AssertionError) as fault:
        plain = fault if isinstance(fault, DiodeError) else RuntimeError(str(fault))
        connection.send(plain)
