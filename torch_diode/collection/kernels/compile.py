"""Compiling a sweep's kernels ahead, in processes that never see a GPU.

Workers compile for a named architecture into Triton's disk cache, by the very call a launch makes,
so the process that launches later finds everything there. Besides speed this tells what a kernel
needs (shared memory, registers) before anything has run.
"""

from __future__ import annotations

import contextlib
import re
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from torch_diode.collection.kernels.library import KernelSpec, jit_function
from torch_diode.collection.kernels.source import TemplateSource
from torch_diode.types.errors import MissingPartError

_USAGE = re.compile(r"REG:(\d+) STACK:(\d+)")
Job = tuple[TemplateSource, KernelSpec]


@dataclass(frozen=True)
class CompileOutcome:
    """What compiling one kernel came to; `error` is empty where it succeeded.

    `stack_bytes` a thread: a matmul kernel has no use for a stack but spilled registers.
    """

    spec: KernelSpec
    seconds: float
    shared_bytes: int = 0
    registers: int = 0
    stack_bytes: int = 0
    error: str = ""

    def fits(self, shared_memory_per_block: int) -> bool:
        """Whether it compiled, and can be loaded on a chip with that much shared memory."""
        return not self.error and self.shared_bytes <= shared_memory_per_block


class _CompileOnlyDriver:
    """What Triton asks of a device before a launch, answered for a chip that need not be there."""

    def __init__(self, arch: int) -> None:
        self._arch = arch

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_current_target(self) -> Any:
        from triton.backends.compiler import GPUTarget

        return GPUTarget("cuda", self._arch, 32)


@contextlib.contextmanager
def compiling_for(arch: int) -> Iterator[None]:
    """Triton compiles for `arch` (90 for sm_90) inside, whatever this machine has."""
    from triton.runtime.driver import driver

    before = driver._active
    driver.set_active(_CompileOnlyDriver(arch))
    try:
        yield
    finally:
        driver._active = before


def compile_kernel(source: TemplateSource, spec: KernelSpec, arch: int) -> Any:
    """Triton's compiled kernel, from its disk cache if it is there; the compiler's errors pass.

    Goes through `JITFunction.warmup`, not `triton.compile`: what a launch does, and so the same
    cache key.
    """
    dtype = getattr(torch, spec.source.dtype)
    sizes = [1] * len(source.sizes)
    with compiling_for(arch):
        return jit_function(source).warmup(
            *[dtype] * len(source.pointers), *sizes, grid=(1,), **spec.constants, **spec.options
        )


def precompile(source: TemplateSource, spec: KernelSpec, arch: int) -> CompileOutcome:
    """Compile into the disk cache; a kernel the compiler refuses is an outcome, not an error."""
    from triton.compiler.errors import CompilationError
    from triton.runtime.errors import TritonError

    start = time.perf_counter()
    try:
        compiled = compile_kernel(source, spec, arch)
        # RuntimeError is what Triton's own passes fail with.
    except (CompilationError, TritonError, RuntimeError) as error:
        text = f"{type(error).__name__}: {error}"
        return CompileOutcome(spec, time.perf_counter() - start, error=text)
    seconds = time.perf_counter() - start
    registers, stack = resource_usage(compiled.asm["cubin"])
    return CompileOutcome(spec, seconds, compiled.metadata.shared, registers, stack)


def longest_first(jobs: Iterable[Job]) -> list[Job]:
    """Big tiles compile longest: started last, one of them would keep everyone waiting."""

    def work(job: Job) -> int:
        config = job[1].config
        return -config.block_m * config.block_n * config.block_k

    return sorted(jobs, key=work)


def resource_usage(cubin: bytes) -> tuple[int, int]:
    """Registers and stack bytes a thread, as the `cuobjdump` that Triton bundles reads them."""
    import triton

    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        command = [triton.knobs.nvidia.cuobjdump.path, "-res-usage", file.name]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    usage = _USAGE.search(done.stdout)
    if usage is None:
        raise MissingPartError(
            f"cuobjdump: got {(done.stdout + done.stderr).strip()[:200]!r}; expected register "
            "counts; reinstall triton"
        )
    return int(usage[1]), int(usage[2])
