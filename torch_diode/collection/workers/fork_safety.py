"""Processes forked from one that holds no GPU, since what is forked from one that does cannot use
it."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from torch_diode.types.errors import MissingPartError

# Importing Inductor asks whether there is a GPU. Asked of CUDA itself, that would leave every
# process forked afterwards without the use of it; asked of NVML, it does not.
os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")

Result = TypeVar("Result")


def holds_gpu() -> bool:
    """Whether this process has used one; without torch it has not."""
    torch = sys.modules.get("torch")
    if torch is None:
        return False
    return bool(torch.cuda.is_initialized() or torch.xpu.is_initialized())


def can_fork() -> bool:
    """Whether a process forked now could do all this one can; elsewhere than on Linux, forking is
    not safe with every library."""
    return sys.platform == "linux" and not holds_gpu()


def run_in_subprocess(function: Callable[..., Result], *arguments: Any) -> Result:
    """What a function returns or raises, called in a process of its own, so that this one holds no
    GPU afterwards; called here where that cannot be."""
    if not can_fork():
        return function(*arguments)
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
        try:
            return pool.submit(function, *arguments).result()
        except BrokenProcessPool:
            raise MissingPartError("device: got a process that ended when asked for it") from None
