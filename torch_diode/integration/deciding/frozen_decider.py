"""Decides the linears of frozen graphs, before torch packs their weights."""

from __future__ import annotations

import time

from torch._inductor.virtualized import V

from torch_diode.candidates import candidate_space
from torch_diode.candidates.cpu.cpp_gemm import cpp_configs
from torch_diode.heuristics import policy
from torch_diode.integration.cpu import cpp_gemm, trial
from torch_diode.integration.cpu.frozen import FrozenLinear, why_unavailable
from torch_diode.integration.deciding.decider import Decider, check_decides_alone
from torch_diode.integration.deciding.problem import problem_of
from torch_diode.integration.hooks import device_hardware
from torch_diode.integration.hooks.fallback import Abstained
from torch_diode.types.candidate import CPP_GEMM, Candidate, CppGEMMConfig
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape
from torch_diode.types.ranking import Ranking


def decide_frozen(decider: Decider, linear: FrozenLinear) -> Candidate | None:
    """The kernel of a linear; None for the library that torch packs its weight for."""
    start = time.perf_counter_ns()
    if reason := why_unavailable():
        raise Abstained(f"frozen linear: {reason}")
    decider.check_free(V.choices)
    hardware = device_hardware.hardware_of(linear.device)
    decider.heuristics.require(hardware)
    problem = problem_of(linear.op, linear.inputs)
    candidates, ranking, rows = _choose(decider, linear, problem, hardware)
    took_us = (time.perf_counter_ns() - start) / 1000
    if any(_is_faulty(candidates[row]) for row in rows):
        candidates, ranking, rows = _choose(decider, linear, problem, hardware)
    mode = "max-autotune" if linear.max_autotune else "plain"
    observing = decider.settings.mode == "observe"
    if len(rows) > 1 and not observing:
        from torch_diode.integration.autotune.frozen_benchmark import order_by_time

        rows = order_by_time(problem, candidates, rows, hardware) or rows
    decider.record_decision(
        problem, hardware, candidates, ranking, rows, took_us, f"{mode}, frozen", own=linear.own
    )
    if observing:
        return None
    winner = candidates[rows[0]]
    linear.keep(winner)
    return None if winner.template == linear.own else winner


def _is_faulty(candidate: Candidate) -> bool:
    return isinstance(candidate.config, CppGEMMConfig) and bool(trial.fault_of(candidate.config))


def _choose(
    decider: Decider, linear: FrozenLinear, problem: MMShape, hardware: Hardware
) -> tuple[Candidates, Ranking, list[int]]:
    """The candidates, their ranking, and the row that decides; in max-autotune those to time."""
    offered = linear.libraries
    # A micro-kernel fits one number of rows, so a dynamic one is left to the libraries.
    if linear.has_static_rows and cpp_configs(problem, hardware) and _compiles(decider, hardware):
        offered += (CPP_GEMM,)
    candidates = candidate_space(problem, hardware, offered)
    if linear.own not in candidates.templates:
        raise Abstained(f"frozen {linear.op} {problem.dtype} {problem.layout}: torch's own")
    ranking = decider.rank(problem, candidates, hardware)
    if linear.max_autotune and decider.settings.mode == "auto":
        count = decider.settings.top or policy.benchmark_count(ranking, candidates, own=linear.own)
        rows = policy.benchmark_set(ranking, candidates, count, linear.own)
    else:
        check_decides_alone(ranking)
        rows = [int(policy.single_choice_order(ranking, candidates, linear.own)[0])]
    return candidates, ranking, rows


def _compiles(decider: Decider, hardware: Hardware) -> bool:
    """Whether micro-kernels can be compiled here and none has failed; says so where not."""
    reason = cpp_gemm.why_unavailable(hardware) or trial.known_fault()
    if reason:
        decider.notes[f"no C++ micro-kernels among the candidates: {reason}"] = None
    return not reason
