"""Decides the linears of frozen graphs, before torch packs their weights."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from torch._inductor.virtualized import V

from torch_diode.candidates import candidate_space
from torch_diode.candidates.cpu.cpp_gemm import cpp_configs
from torch_diode.heuristics import policy
from torch_diode.integration.cpu import cpp_gemm, trial
from torch_diode.integration.cpu.frozen import FrozenLinear, why_unavailable
from torch_diode.integration.deciding.problem import problem_of
from torch_diode.integration.hooks import device_hardware
from torch_diode.integration.hooks.fallback import Abstained, NotApplicable
from torch_diode.types.candidate import CPP_GEMM, Candidate, CppGEMMConfig
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape
from torch_diode.types.ranking import Ranking

if TYPE_CHECKING:
    from torch_diode.integration.deciding.decider import Decider


def decide_frozen(decider: Decider, linear: FrozenLinear) -> Candidate | None:
    """The kernel of a linear; None for the library that torch packs its weight for."""
    start = time.perf_counter_ns()
    if linear.max_autotune:
        raise NotApplicable
    if reason := why_unavailable():
        raise Abstained(f"frozen linear: {reason}")
    decider.check_free(V.choices)
    hardware = device_hardware.hardware_of(linear.device)
    decider.check_has_heuristic(hardware)
    problem = problem_of(linear.op, linear.inputs)
    candidates, ranking, row = _choose(decider, linear, problem, hardware)
    config = candidates[row].config
    took_us = (time.perf_counter_ns() - start) / 1000
    if isinstance(config, CppGEMMConfig) and trial.fault_of(config):
        candidates, ranking, row = _choose(decider, linear, problem, hardware)
    decider.record_decision(problem, hardware, candidates, ranking, [row], took_us, "plain, frozen")
    winner = candidates[row]
    observing = decider.settings.mode == "observe"
    return None if observing or winner.template == linear.own else winner


def _choose(
    decider: Decider, linear: FrozenLinear, problem: MMShape, hardware: Hardware
) -> tuple[Candidates, Ranking, int]:
    offered = linear.libraries
    # A micro-kernel fits one number of rows, so a dynamic one is left to the libraries.
    if linear.has_static_rows and cpp_configs(problem, hardware) and _compiles(decider, hardware):
        offered += (CPP_GEMM,)
    candidates = candidate_space(problem, hardware, offered)
    if linear.own not in candidates.templates:
        raise Abstained(f"frozen {linear.op} {problem.dtype} {problem.layout}: torch's own")
    ranking = decider.rank(problem, candidates, hardware)
    return candidates, ranking, int(policy.single_choice_order(ranking, candidates, linear.own)[0])


def _compiles(decider: Decider, hardware: Hardware) -> bool:
    """Whether micro-kernels can be compiled here and none has failed; says so where not."""
    reason = cpp_gemm.why_unavailable(hardware) or trial.known_fault()
    if reason:
        decider.notes[f"no C++ micro-kernels among the candidates: {reason}"] = None
    return not reason
