"""Forking rules: a process forked from one that has used a GPU cannot use it."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from torch_diode.types.errors import MissingPartError

# Importing Inductor checks for a GPU. Checked through CUDA, every process forked afterwards could
# not use it; checked through NVML, it can.
os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")

Result = TypeVar("Result")


def holds_gpu() -> bool:
    """True if this process has initialized a GPU."""
    torch = sys.modules.get("torch")
    if torch is None:
        return False
    return bool(torch.cuda.is_initialized() or torch.xpu.is_initialized())


def can_fork() -> bool:
    """True if a forked process could use the GPU; outside Linux, forking is not always safe."""
    return sys.platform == "linux" and not holds_gpu()


def run_in_subprocess(function: Callable[..., Result], *arguments: Any) -> Result:
    """Call a function in a forked process, so that this one holds no GPU afterwards; in this one
    where forking is not possible."""
    if not can_fork():
        return function(*arguments)
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
        try:
            return pool.submit(function, *arguments).result()
        except BrokenProcessPool:
            raise MissingPartError(
                "device: the process that looked for it has ended; check the driver with nvidia-smi"
            ) from None
