"""GPU-less processes of the fidelity workflow: lower problems and compile both kinds of kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from _fidelity_plan import Plan

from torch_diode.candidates.gpu.eligibility import arch_number
from torch_diode.collection.kernels.compile import Job, precompile
from torch_diode.collection.workers.pool import ProgressMarker
from torch_diode.types.hardware import Hardware
from workflows.measuring.jobs import catch_job_errors, enter_for_process_lifetime


@dataclass(frozen=True)
class Lower:
    """Request to render a problem's candidates with Inductor."""

    plan: Plan


@dataclass(frozen=True)
class CompileStatic:
    """Request to compile one of Inductor's kernels."""

    kernel: Any


@dataclass(frozen=True)
class CompileSweep:
    """Request to compile one of the sweep's kernels."""

    job: Job


def compiler(hardware: Hardware, _: ProgressMarker) -> Callable[[Any], Any]:
    """Worker that answers the three requests on a fake GPU."""
    from torch_diode.integration.capture.fake_gpu import pretend
    from workflows.measuring.static_kernels import compile_static, static_kernels

    enter_for_process_lifetime(pretend(hardware))
    arch = arch_number(hardware.arch)

    def answer(request: Any) -> Any:
        if isinstance(request, Lower):
            return static_kernels(request.plan.problem, request.plan.candidates)
        if isinstance(request, CompileStatic):
            return compile_static(request.kernel)
        return precompile(*request.job, arch)

    return catch_job_errors(answer)
