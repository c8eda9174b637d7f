"""The fidelity workflow's processes that lower problems and compile both sorts of kernels; no GPU
there."""

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
    """Have Inductor render a problem's candidates."""

    plan: Plan


@dataclass(frozen=True)
class CompileStatic:
    """Compile one of them."""

    kernel: Any


@dataclass(frozen=True)
class CompileSweep:
    """Compile a kernel of the sweep's."""

    job: Job


def compiler(hardware: Hardware, _: ProgressMarker) -> Callable[[Any], Any]:
    """Answers the three, pretending to have the chip."""
    from torch_diode.integration.capture.fake_gpu import pretend
    from workflows.measuring.static_kernels import compile_static, static_kernels

    enter_for_process_lifetime(pretend(hardware))
    arch = arch_number(hardware.arch)

    def answer(order: Any) -> Any:
        if isinstance(order, Lower):
            return static_kernels(order.plan.problem, order.plan.candidates)
        if isinstance(order, CompileStatic):
            return compile_static(order.kernel)
        return precompile(*order.job, arch)

    return catch_job_errors(answer)
