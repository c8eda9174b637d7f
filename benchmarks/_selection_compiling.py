"""GPU-less processes of the live selection benchmark: choices and lists for a problem, rendered by
Inductor and compiled."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from _live import shipped
from _selection import Posed

from torch_diode.candidates.gpu.resources import worth_compiling
from torch_diode.candidates.space import candidate_space, canonical_candidate
from torch_diode.collection.kernels.operands import tf32_precision
from torch_diode.collection.workers.pool import ProgressMarker
from torch_diode.heuristics.analytical import AnalyticalHeuristic
from torch_diode.heuristics.base import Heuristic
from torch_diode.types.candidate import ATEN, DECOMPOSE_K, Candidate
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape
from workflows.measuring.jobs import catch_job_errors, enter_for_process_lifetime

PRAISED, ANALYTICAL = 10, 3
LISTING = {"max_autotune": True, "max_autotune_gemm_backends": "ATEN,TRITON"}


@dataclass(frozen=True)
class Pose:
    """Request to decide and render a problem."""

    posed: Posed


@dataclass(frozen=True)
class Compile:
    """Request to compile one kernel of a problem."""

    kernel: Any


@dataclass(frozen=True)
class Choices:
    """Torch-diode's plain choice and max-autotune's list, all rendered."""

    diode: Candidate
    decision_us: float
    default: tuple[Candidate, ...]
    kernels: tuple[Any, ...]


def compiler(hardware: Hardware, _: ProgressMarker) -> Callable[[Any], Any]:
    """Worker that answers Pose and Compile on a fake GPU."""
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    from torch_diode.integration.capture.fake_gpu import pretend
    from workflows.measuring.static_kernels import compile_static

    enter_for_process_lifetime(pretend(hardware))
    heuristic = shipped(hardware)

    def answer(request: Any) -> Any:
        if isinstance(request, Compile):
            return compile_static(request.kernel)
        return choices_of(request.posed, hardware, heuristic)

    return catch_job_errors(answer)


def choices_of(posed: Posed, hardware: Hardware, heuristic: Heuristic) -> Choices:
    """Choices by Inductor's real lowering, inside `pretend`."""
    from torch._inductor.virtualized import V

    from torch_diode.integration.capture.default_configs import ListRecorder, inputs_of
    from torch_diode.integration.capture.fake_gpu import lower
    from torch_diode.integration.hooks.choices import DiodeInductorChoices
    from workflows.measuring.static_kernels import static_kernels

    problem = posed.problem
    op, inputs = getattr(torch, problem.op), inputs_of(problem)
    handler, recorder = DiodeInductorChoices(heuristic), ListRecorder()
    with tf32_precision(problem.tf32):
        with V.set_choices_handler(handler):
            lower(op, inputs, generate=False)
        with V.set_choices_handler(recorder):
            lower(op, inputs, LISTING, generate=False)
    decisions = list(handler.decider.record)
    chosen = decisions[-1].winner.candidate if decisions else Candidate(ATEN)
    listed = [c for c in recorder.candidates if c.config is not None]
    own_names = [canonical_candidate(candidate, problem) for candidate in listed]
    wanted = dict.fromkeys([*top_ranked(problem, hardware, heuristic), *posed.swept, *own_names])
    quick = _quick(problem, list(wanted))
    # With ATen, which would otherwise replace the last one.
    own = [chosen] if chosen.config is not None else []
    wanted = dict.fromkeys([Candidate(ATEN), *own, *quick])
    return Choices(
        chosen,
        decisions[-1].microseconds if decisions else 0.0,
        tuple(listed),
        tuple(static_kernels(problem, list(wanted))),
    )


def top_ranked(problem: MMShape, hardware: Hardware, heuristic: Heuristic) -> list[Candidate]:
    """First candidates of the model and the analytical heuristic; no TMA, as in a plain compile."""
    space = candidate_space(problem, hardware)
    space = space.take(~space.is_template(DECOMPOSE_K) & ~space.is_template(ATEN))
    space = space.take(~space.is_template("triton::mm_persistent_tma"))
    found: list[Candidate] = []
    for judge, count in ((heuristic, PRAISED), (AnalyticalHeuristic(), ANALYTICAL)):
        ranking = judge.rank(problem, space, hardware)
        if ranking is not None:
            found += [space[int(row)] for row in ranking.order[:count]]
    return found


def _quick(problem: MMShape, wanted: Sequence[Candidate]) -> list[Candidate]:
    if not wanted:
        return []
    return list(Candidates.of(wanted).take(worth_compiling(Candidates.of(wanted), problem)))
