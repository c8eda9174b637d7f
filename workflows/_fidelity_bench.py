"""GPU process of the fidelity workflow: times both kinds of kernels in turn, or the fixed-size
ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from _fidelity_plan import Plan

from torch_diode.collection.kernels.launch import Launcher
from torch_diode.collection.kernels.library import KernelLibrary, KernelSpec
from torch_diode.collection.kernels.operands import operands, tf32_precision
from torch_diode.collection.timers.cuda import CudaTimer
from torch_diode.collection.timers.timer import Launch, Measurement
from torch_diode.collection.workers.pool import ProgressMarker
from torch_diode.hardware.versions import versions
from torch_diode.types.candidate import ATEN, Candidate
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape
from torch_diode.types.timing import Timing
from workflows.measuring.jobs import catch_job_errors
from workflows.measuring.verify_kernels import verify_kernels

STATIC, SWEEP = "inductor-static", "sweep"
ROUNDS = ((float("inf"), 6), (1.3, 8))
"""Enough samples to request all candidates, not only the fastest."""


@dataclass(frozen=True)
class Time:
    """Request to time a problem with its compiled kernels."""

    plan: Plan
    kernels: tuple[Any, ...]
    specs: tuple[tuple[Candidate, KernelSpec], ...]


def bench(hardware: Hardware, seed: int, _: ProgressMarker) -> Callable[[Time], Any]:
    """Worker that answers problems with timings of both methods."""
    device = torch.device("cuda", torch.cuda.current_device())
    timer = CudaTimer(device, hardware.l2_bytes, seed)

    from torch_diode.integration.capture.template_source import template_source
    from workflows.measuring.static_kernels import bind_static

    launcher = Launcher(KernelLibrary(template_source, hardware.units))
    generator = torch.Generator(device).manual_seed(seed)
    made_with = versions()

    def answer(request: Time) -> list[Timing]:
        with tf32_precision(request.plan.problem.tf32):
            return timed(request)

    def timed(request: Time) -> list[Timing]:
        problem = request.plan.problem
        tensors = operands(problem, device, generator)
        wanted: list[tuple[str, Candidate, Callable[[], Launch]]] = []
        for kernel in request.kernels:
            make = lambda kernel=kernel: bind_static(kernel, tensors)  # noqa: E731
            wanted.append((STATIC, kernel.candidate, make))
        for candidate, spec in request.specs:
            make = lambda spec=spec: launcher.bind(spec, tensors)  # noqa: E731
            wanted.append((SWEEP, candidate, make))
        methods = (STATIC, SWEEP) if request.specs else (STATIC,)
        wanted += [(method, Candidate(ATEN), tensors.aten) for method in methods]
        outcomes = verify_kernels(tensors, [make for _, _, make in wanted])
        launches = {i: one.launch for i, one in enumerate(outcomes) if one.launch is not None}
        measured = timer.measure(list(launches.values()), ROUNDS)
        results: dict[int, Measurement] = dict(zip(launches, measured, strict=True))
        return [
            timing_of(
                hardware.name, problem, candidate, method, one.status, results.get(i), made_with
            )
            for i, ((method, candidate, _), one) in enumerate(zip(wanted, outcomes, strict=True))
        ]

    return catch_job_errors(answer, torch.cuda.synchronize)


def timing_of(
    hardware: str,
    problem: MMShape,
    candidate: Candidate,
    method: str,
    status: str,
    measured: Measurement | None,
    made_with: dict[str, str],
) -> Timing:
    """Timing of a kernel; without a time if it failed."""
    common: dict[str, Any] = {"status": status, "method": method, **made_with}
    if measured is None:
        return Timing(hardware, problem, candidate, None, repeats=0, **common)
    taken: dict[str, Any] = {"spread": measured.spread, "repeats": measured.repeats}
    return Timing(hardware, problem, candidate, measured.time_us, **taken, **common)
