"""Compilation of a sweep's kernels without a GPU.

Kernels are compiled for a named architecture into Triton's disk cache by the call a launch makes,
so the process that launches them later finds them there. The compiled kernels also tell the shared
memory and registers needed before anything has run.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from torch_diode.collection.kernels.library import KernelSpec, jit_function
from torch_diode.collection.kernels.outcome import CompileOutcome
from torch_diode.collection.kernels.source import TemplateSource
from torch_diode.types.errors import MissingPartError

_USAGE = re.compile(r"REG:(\d+) STACK:(\d+)")
_PTXAS_VARIABLE = "TRITON_PTXAS_PATH"
Job = tuple[TemplateSource, KernelSpec]


class _CompileOnlyDriver:
    """A Triton driver that reports a target architecture without a device."""

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
    """Have Triton compile for `arch` (90 for sm_90) in this context, whatever the machine has."""
    from triton.runtime.driver import driver

    before = driver._active
    driver.set_active(_CompileOnlyDriver(arch))
    try:
        yield
    finally:
        driver._active = before


def compile_kernel(source: TemplateSource, spec: KernelSpec, arch: int) -> Any:
    """Compile a kernel with Triton, or load it from its disk cache; compiler errors are raised.

    Uses `JITFunction.warmup`, not `triton.compile`: as a launch does, and so with its cache key.
    """
    dtype = getattr(torch, spec.source.dtype)
    sizes = [1] * len(source.sizes)
    with compiling_for(arch):
        return jit_function(source).warmup(
            *[dtype] * len(source.pointers), *sizes, grid=(1,), **spec.constants, **spec.options
        )


def precompile(source: TemplateSource, spec: KernelSpec, arch: int) -> CompileOutcome:
    """Compile into the disk cache; a compiler error is part of the outcome."""
    from triton.compiler.errors import CompilationError
    from triton.runtime.errors import TritonError

    start = time.perf_counter()
    try:
        compiled = compile_kernel(source, spec, arch)
        # Triton's own passes raise RuntimeError.
    except (CompilationError, TritonError, RuntimeError) as error:
        text = f"{type(error).__name__}: {error}"
        return CompileOutcome(spec, time.perf_counter() - start, error=text)
    seconds = time.perf_counter() - start
    registers, stack = resource_usage(compiled.asm["cubin"])
    return CompileOutcome(spec, seconds, compiled.metadata.shared, registers, stack)


def resource_usage(cubin: bytes) -> tuple[int, int]:
    """Registers and stack bytes per thread, read with the `cuobjdump` that Triton bundles."""
    import triton

    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        command = [triton.knobs.nvidia.cuobjdump.path, "-res-usage", file.name]
        result = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    usage = _USAGE.search(result.stdout)
    if usage is None:
        raise MissingPartError(
            f"cuobjdump: got {(result.stdout + result.stderr).strip()[:200]!r}; expected register "
            "counts; reinstall triton"
        )
    return int(usage[1]), int(usage[2])


def use_inductors_ptxas(folder: Path | None = None) -> None:
    """Have Triton use the ptxas that torch bundles, if there is one, as Inductor's compile workers
    do; for this process and those it starts, before the first kernel. A user's setting is kept.

    Triton bundles another release, whose code differs and has other keys in Triton's cache.
    """
    bundled = (folder or Path(torch.__file__).parent) / "bin" / "ptxas"
    if bundled.is_file() and os.access(bundled, os.X_OK):
        os.environ.setdefault(_PTXAS_VARIABLE, str(bundled))
