"""Compiling kernels in other processes while the GPU times those that are ready."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Iterable, Sequence

import torch

from torch_diode.collection.kernel_compile import (
    CompileOutcome,
    ForkAfterCudaError,
    Job,
    precompile,
)
from torch_diode.collection.kernels import KernelSpec


class CompileAhead:
    """Worker processes that compile jobs in order, and the outcomes so far.

    Has to be made before this process touches CUDA: forked workers must not inherit a context.
    """

    def __init__(self, jobs: Sequence[Job], arch: int, processes: int) -> None:
        if torch.cuda.is_initialized():
            raise ForkAfterCudaError(
                "compile ahead: got a process that has used CUDA; expected one that has not; "
                "make it before the first CUDA call"
            )
        self.outcomes: dict[KernelSpec, CompileOutcome] = {}
        self._news = threading.Condition()
        self._pool = multiprocessing.get_context("fork").Pool(processes)
        work = [(source, spec, arch) for source, spec in jobs]
        results = self._pool.imap_unordered(_compile, work, chunksize=1)
        self._reader = threading.Thread(target=self._read, args=(results,), daemon=True)
        self._reader.start()

    def _read(self, results: Iterable[CompileOutcome]) -> None:
        for outcome in results:
            with self._news:
                self.outcomes[outcome.spec] = outcome
                self._news.notify_all()

    def wait_for(self, specs: Iterable[KernelSpec], seconds: float | None = None) -> bool:
        """Wait until all of these are compiled; False if that took longer than allowed."""
        wanted = set(specs)
        with self._news:
            return self._news.wait_for(lambda: wanted <= self.outcomes.keys(), seconds)

    def stop(self) -> None:
        """End the workers; what is not compiled stays so."""
        self._pool.terminate()
        self._pool.join()


def _compile(job: tuple[object, KernelSpec, int]) -> CompileOutcome:
    return precompile(*job)  # type: ignore[arg-type]
