"""Kernels of Inductor's C++ template on a CPU: one per problem, config and number of threads.

Sizes and threads are compiled in, as in a compiled graph. Kernels are built before anything is
timed, in processes of their own, and kept in Inductor's cache on disk, where the process that times
them finds them. Who builds them is passed in (`integration.cpu.build.build`), since this package
does not import Inductor.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

import torch

from torch_diode.collection.kernels.operands import Operands
from torch_diode.collection.kernels.outcome import CompileOutcome, KernelInfeasibleError
from torch_diode.types.candidate import Candidate, CppGEMMConfig
from torch_diode.types.errors import DiodeError
from torch_diode.types.problem import MMShape


class BuiltKernel(Protocol):
    """A kernel: `run(a, pack(b), bias)` computes the problem it was built for."""

    @property
    def pack(self) -> Callable[[torch.Tensor], torch.Tensor]:
        """From B to the layout that the kernel reads."""

    @property
    def run(self) -> Callable[..., torch.Tensor]:
        """Takes A, the packed B and the bias, if there is one."""


KernelBuilder = Callable[[MMShape, CppGEMMConfig, int], BuiltKernel]


@dataclass(frozen=True)
class CppKernelSpec:
    """One kernel."""

    problem: MMShape
    config: CppGEMMConfig
    threads: int


@dataclass(frozen=True)
class CppJob:
    """A kernel to build, and who builds it; sent to another process."""

    builder: KernelBuilder
    spec: CppKernelSpec

    def run(self) -> CompileOutcome:
        """Build it into the cache on disk; a compiler's error is part of the outcome."""
        start, error = time.perf_counter(), ""
        try:
            self.builder(self.spec.problem, self.spec.config, self.spec.threads)
        except (RuntimeError, DiodeError) as fault:
            error = f"{type(fault).__name__}: {fault}"
        return CompileOutcome(self.spec, time.perf_counter() - start, error=error)


@dataclass(frozen=True)
class CppLaunch:
    """A call of a kernel, with a packed weight of its own."""

    kernel: BuiltKernel
    a: torch.Tensor
    packed: torch.Tensor
    spare: torch.Tensor
    bias: torch.Tensor | None

    def __call__(self) -> torch.Tensor:
        """Call it."""
        return self.kernel.run(self.a, self.packed, self.bias)

    def warm_up(self) -> None:
        """Run its code on another weight of the same size."""
        self.kernel.run(self.a, self.spare, self.bias)


class CpuKernels:
    """Kernels of a CPU's sweep; without a builder, libraries alone can be timed."""

    def __init__(self, builder: KernelBuilder | None = None, threads: int = 0) -> None:
        self._builder, self._threads = builder, threads

    @property
    def builds(self) -> bool:
        """True if there is a builder."""
        return self._builder is not None

    def spec_for(self, problem: MMShape, candidate: Candidate) -> CppKernelSpec:
        """Spec of the kernel that runs `candidate` on `problem`; raises if there is none."""
        if self._builder is None or not isinstance(candidate.config, CppGEMMConfig):
            raise KernelInfeasibleError(f"{candidate}: got the CPU; expected a device that runs it")
        return CppKernelSpec(problem, candidate.config, self._threads)

    def jobs(self, specs: Iterable[CppKernelSpec]) -> list[CppJob]:
        """Jobs for `CompileAhead` that build `specs` in other processes."""
        return [CppJob(self._builder, spec) for spec in specs if self._builder is not None]

    def bind(self, spec: CppKernelSpec, tensors: Operands) -> CppLaunch:
        """Function that calls the kernel on these tensors."""
        assert self._builder is not None
        kernel = self._builder(spec.problem, spec.config, spec.threads)
        packed = kernel.pack(tensors.b)
        return CppLaunch(kernel, tensors.a, packed, packed.clone(), tensors.bias)
