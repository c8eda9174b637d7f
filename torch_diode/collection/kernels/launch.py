"""Preparation of launches: a candidate and a problem's tensors become a bare kernel launch.

A sweep prepares hundreds of thousands of them, and the GPU is idle meanwhile. Kernels are looked up
by the properties of the problem they depend on, and loaded once.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch

from torch_diode.collection.kernels.library import KernelLibrary, KernelSpec, SweepKernel
from torch_diode.collection.kernels.operands import Operands
from torch_diode.collection.kernels.source import unit_of
from torch_diode.collection.timers.timer import Launch
from torch_diode.types.candidate import Candidate
from torch_diode.types.problem import DTYPE_BYTES, MMShape

if TYPE_CHECKING:
    from torch_diode.collection.kernels.cpp import CpuKernels


class Launcher:
    """Finds, loads and binds the kernels of a library."""

    def __init__(self, library: KernelLibrary) -> None:
        self._library = library
        self._specs: dict[tuple[Any, ...], KernelSpec] = {}
        self._loaded: dict[KernelSpec, tuple[SweepKernel, Any, tuple[Any, ...]]] = {}
        self._kind = functools.lru_cache(maxsize=16)(_kind)

    def spec_for(self, problem: MMShape, candidate: Candidate) -> KernelSpec:
        """Spec of the kernel that runs a candidate on a problem, cached by what it depends on."""
        assert candidate.config is not None
        kind = self._kind(problem)
        if kind is None:
            return self._library.spec_for(problem, candidate)
        block_k = candidate.config.block_k
        key = (kind, candidate, problem.K % block_k == 0, block_k >= problem.K)
        spec = self._specs.get(key)
        if spec is None:
            spec = self._specs[key] = self._library.spec_for(problem, candidate)
        return spec

    def bind(self, spec: KernelSpec, tensors: Operands) -> Launch:
        """Function that launches the kernel on these tensors and does nothing else."""
        loaded = self._loaded.get(spec)
        if loaded is None:
            loaded = self._loaded[spec] = self._load(spec, tensors)
        kernel, compiled, constants = loaded
        grid = kernel.grid(tensors.problem)
        stream = torch.cuda.current_stream(tensors.a.device).cuda_stream
        arguments = kernel.arguments(
            tensors.problem, tensors.a, tensors.b, tensors.out, tensors.bias
        )
        return functools.partial(
            compiled.run,
            *grid,
            stream,
            compiled.function,
            compiled.packed_metadata,
            None,
            None,
            None,
            *arguments,
            *constants,
        )

    def _load(
        self, spec: KernelSpec, tensors: Operands
    ) -> tuple[SweepKernel, Any, tuple[Any, ...]]:
        kernel = self._library.kernel_for(spec)
        compiled = kernel.load(tensors.a, tensors.b, tensors.out, tensors.bias)
        return kernel, compiled, tuple(spec.constants.values())


def launcher_of(library: KernelLibrary | CpuKernels) -> Launcher | CpuKernels:
    """The launcher of a device's kernels; those of a CPU are launched as they are."""
    return Launcher(library) if isinstance(library, KernelLibrary) else library


def _kind(problem: MMShape) -> tuple[Any, ...] | None:
    """Properties of a problem that a kernel's spec depends on, except how blocks divide K; None if
    the template may also depend on the sizes themselves."""
    itemsize = DTYPE_BYTES[problem.dtype]
    units = tuple(unit_of(size, itemsize) for size in (problem.M, problem.N, problem.K))
    if (problem.transpose_a and units[0] == 1) or (not problem.transpose_b and units[1] == 1):
        return None
    largest = problem.B * max(problem.M * problem.K, problem.K * problem.N, problem.M * problem.N)
    layout, kinds = problem.layout, (problem.op, problem.dtype, problem.bias, problem.tf32)
    return (*kinds, layout, units, largest > 2**31 - 1)
