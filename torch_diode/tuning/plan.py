"""The plan of a tuning: which candidates of which problems are to be timed, in which order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from torch_diode.candidates.cpu.libraries import PLAIN
from torch_diode.candidates.space import candidate_space
from torch_diode.collection import plan as collection_plan
from torch_diode.collection.devices import CPU
from torch_diode.collection.workers.fork_safety import run_in_subprocess
from torch_diode.heuristics.analytical import AnalyticalHeuristic
from torch_diode.integration.hooks import torch_compat
from torch_diode.types.candidate import (
    ATEN,
    CPP_GEMM,
    LIBRARIES,
    MKL_PACKED,
    ONEDNN_PACKED,
    Candidate,
)
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.dataset import Dataset
from torch_diode.types.errors import InvalidValueError
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape

if TYPE_CHECKING:
    from torch_diode.integration.capture.trace import TracedProblem

_START_S, _PROBLEM_S, _ROUND_S, _ROUNDS = 5.0, 0.3, 0.007, 40
"""Seconds to start the timing process, to prepare a problem, to flush the caches of a CPU before a
round; and rounds per problem. Measured on two cores; a GPU's take less."""
_COMPILE_S = {CPU: 2.5}
_GPU_COMPILE_S = 0.6
"""Seconds per kernel on one core."""


@dataclass(frozen=True)
class Use:
    """A problem as a program has it: how often, and by what torch alone would run it."""

    problem: MMShape
    count: int
    own: str
    """Template of torch's own choice."""
    dynamic: str = ""

    @property
    def frozen(self) -> bool:
        """True if the weight is a constant that torch packs."""
        return self.own != ATEN


@dataclass(frozen=True)
class Task:
    """A problem to time, with all its candidates."""

    problem: MMShape
    candidates: Candidates
    count: int
    aten_us: float
    """Modelled time of ATen."""


@dataclass(frozen=True)
class Plan:
    """The work for one hardware and number of threads."""

    hardware: Hardware
    uses: tuple[Use, ...]
    tasks: tuple[Task, ...]
    """Those with a choice, heaviest first."""
    left_out: Counter[str]
    """Reasons for which problems are not timed, and how many."""

    def without(self, measured: Dataset | None) -> tuple[Task, ...]:
        """The tasks that are not measured with all their candidates yet."""
        if measured is None:
            return self.tasks
        found = _candidates_of(measured, {task.problem for task in self.tasks})
        return tuple(
            task
            for task in self.tasks
            if (known := found.get(task.problem)) is None
            or any(known.position(candidate) is None for candidate in task.candidates)
        )

    def seconds(self, tasks: Sequence[Task], processes: int) -> float:
        """Estimated time to measure these."""
        if not tasks:
            return 0.0
        kernels = sum(c.config is not None for task in tasks for c in task.candidates)
        compile_s = _COMPILE_S.get(self.hardware.kind, _GPU_COMPILE_S) * kernels / processes
        timing_s = sum(
            _PROBLEM_S + _ROUNDS * (_ROUND_S + len(task.candidates) * task.aten_us / 1e6)
            for task in tasks
        )
        return _START_S + compile_s + timing_s


def make_plan(
    hardware: Hardware, traced: Mapping[TracedProblem, int], *, quick: bool, whole: bool
) -> Plan:
    """The plan for what was met on one hardware.

    `quick` leaves out what has to be compiled on a CPU, and on a GPU all but Inductor's default
    list. `whole` times also what needs a constant weight, since it is not known to be none.
    """
    counts: Counter[tuple[MMShape, bool]] = Counter()
    dynamic: dict[MMShape, str] = {}
    left_out: Counter[str] = Counter()
    for item, count in traced.items():
        if reason := _why_not_timed(item.problem, hardware):
            left_out[reason] += 1
            continue
        counts[item.problem, item.constant] += count
        dynamic[item.problem] = dynamic.get(item.problem) or item.dynamic
    uses = tuple(
        Use(problem, count, _own(problem, constant, dynamic[problem]), dynamic[problem])
        for (problem, constant), count in counts.items()
    )
    packed = {p for p, constant in counts if constant or whole}
    space = _Space(hardware, quick, list(dynamic))
    tasks = []
    for problem in dynamic:
        candidates = space.of(problem, problem in packed, bool(dynamic[problem]))
        if len(candidates) > 1:
            count = counts[problem, False] + counts[problem, True]
            tasks.append(Task(problem, candidates, count, _aten_us(problem, hardware)))
        else:
            left_out["ATen alone can run them"] += 1
    tasks.sort(key=lambda task: -task.count * task.aten_us)
    return Plan(hardware, uses, tuple(tasks), left_out)


class _Space:
    """The candidates to time of each problem."""

    def __init__(self, hardware: Hardware, quick: bool, problems: Sequence[MMShape]) -> None:
        self.hardware, self.quick = hardware, quick
        from torch_diode.toolkit.collecting.run import default_lists

        is_gpu = hardware.kind != CPU
        # In another process: this one must not touch the GPU before it has forked its workers.
        lists = run_in_subprocess(default_lists, problems, hardware) if quick and is_gpu else None
        self.lists = lists

    def of(self, problem: MMShape, packed: bool, dynamic: bool) -> Candidates:
        if self.hardware.kind != CPU:
            if self.lists is None:
                return collection_plan.exhaustive(self.hardware)(problem)
            return collection_plan.listed(self.lists.__getitem__, self.hardware)(problem)
        # A micro-kernel fits one number of rows.
        compiled = () if self.quick or dynamic else (CPP_GEMM,)
        templates = (*LIBRARIES, *compiled) if packed else PLAIN
        return candidate_space(problem, self.hardware, templates)


def _own(problem: MMShape, constant: bool, dynamic: str) -> str:
    """Torch's own choice: ATen, or the library that it packs a constant weight for."""
    if not constant:
        return ATEN
    mkl = problem.dtype == "float32" and not dynamic and torch_compat.packs_float32_for_mkl()
    return MKL_PACKED if mkl else ONEDNN_PACKED


def _why_not_timed(problem: MMShape, hardware: Hardware) -> str:
    try:
        collection_plan.check_problems([problem], hardware)
    except InvalidValueError:
        return f"{problem.dtype} to {problem.out_dtype}, or beyond the memory, cannot be timed"
    return ""


def _aten_us(problem: MMShape, hardware: Hardware) -> float:
    """Modelled time of ATen; by the operations alone where the model does not know the chip."""
    aten = Candidates.of([Candidate(ATEN)])
    ranking = AnalyticalHeuristic().rank(problem, aten, hardware)
    return float(ranking.predicted_us[0]) if ranking else problem.flops / 1e5


def _candidates_of(dataset: Dataset, problems: Iterable[MMShape]) -> dict[MMShape, Candidates]:
    """The candidates timed of each of these problems."""
    wanted, groups = set(problems), dataset.problems
    found = {}
    for number, row in enumerate(groups.first.tolist()):
        problem = dataset.problem(row)
        if problem in wanted:
            found[problem] = dataset.candidates(np.flatnonzero(groups.ids == number))
    return found
