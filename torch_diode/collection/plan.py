"""Plan of a collection: problems and their candidates, in groups that share kernels.

A kernel is compiled for a kind of problem. Problems of one kind are grouped, so that their kernels
are compiled once, before the first of them is timed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from torch_diode.candidates.cpu.cpp_gemm import cpp_configs
from torch_diode.candidates.gpu.eligibility import TRITON_DTYPES
from torch_diode.candidates.space import candidate_space, canonical_candidate
from torch_diode.collection.devices import CPU
from torch_diode.collection.kernels.cpp import CpuKernels
from torch_diode.collection.kernels.launch import launcher_of
from torch_diode.collection.kernels.library import KernelLibrary
from torch_diode.collection.kernels.operands import bytes_needed
from torch_diode.collection.kernels.outcome import KernelInfeasibleError
from torch_diode.collection.kernels.source import unit_of
from torch_diode.types.candidate import ATEN, DECOMPOSE_K, LIBRARIES
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.errors import EmptySelectionError, InvalidValueError
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import DTYPE_BYTES, MMShape

CHUNK = 50
"""Problems per group, which wait for their kernels together."""

CandidateRule = Callable[[MMShape], Candidates]
Task = tuple[MMShape, Candidates]

_CHECKING_BYTES = 12
"""Per element of the output: the reference, the result and their difference as float32."""
_MEMORY_SHARE = 0.9


@dataclass(frozen=True)
class Group:
    """Problems that are timed one after the other and share most of their kernels."""

    name: str
    tasks: tuple[Task, ...]
    specs: tuple[Any, ...]
    """The kernels needed, each once."""

    @classmethod
    def of(cls, name: str, tasks: Sequence[Task], library: KernelLibrary | CpuKernels) -> Group:
        """A group of these problems with all kernels they need."""
        launcher = launcher_of(library)
        specs: dict[Any, None] = {}
        for problem, candidates in tasks:
            for candidate in candidates:
                if candidate.config is not None:
                    with contextlib.suppress(KernelInfeasibleError):
                        specs[launcher.spec_for(problem, candidate)] = None
        return cls(name, tuple(tasks), tuple(specs))


def exhaustive(hardware: Hardware) -> CandidateRule:
    """The candidate space without splits of K, for which the sweep has no kernels."""

    def rule(problem: MMShape) -> Candidates:
        space = candidate_space(problem, hardware)
        return space.take(~space.is_template(DECOMPOSE_K))

    return rule


def listed(lists: CandidateRule, hardware: Hardware) -> CandidateRule:
    """Candidates of given lists (Inductor's) that are in the candidate space."""
    whole = exhaustive(hardware)

    def rule(problem: MMShape) -> Candidates:
        wanted = {canonical_candidate(candidate, problem) for candidate in lists(problem)}
        space = whole(problem)
        keep = [c.template == ATEN or canonical_candidate(c, problem) in wanted for c in space]
        return space.take(np.array(keep, dtype=bool))

    return rule


def libraries(hardware: Hardware) -> CandidateRule:
    """The libraries of a CPU, where the C++ template cannot be compiled."""

    def rule(problem: MMShape) -> Candidates:
        space = candidate_space(problem, hardware)
        return space.take(np.array([c.template in LIBRARIES for c in space], dtype=bool))

    return rule


def plan(
    problems: Sequence[MMShape],
    rule: CandidateRule,
    library: KernelLibrary | CpuKernels,
    chunk: int = CHUNK,
) -> list[Group]:
    """Groups of at most `chunk` problems of one kind, kinds in order of first occurrence."""
    kinds: dict[tuple[Any, ...], list[MMShape]] = {}
    for problem in problems:
        kinds.setdefault(kind_of(problem), []).append(problem)
    groups = []
    for kind, members in kinds.items():
        for part in _parts(members, chunk):
            tasks: list[Task] = [(problem, rule(problem)) for problem in part]
            groups.append(Group.of(kind_name(kind), tasks, library))
    return groups


def kind_of(problem: MMShape) -> tuple[Any, ...]:
    """Everything that decides which kernels a problem needs, except whether a block divides K.

    The alignment of M matters if A is read along M, that of K if an operand is read along K.
    """
    item = DTYPE_BYTES[problem.dtype]
    units = (
        unit_of(problem.M, item) if problem.transpose_a else 1,
        unit_of(problem.N, item),
        unit_of(problem.K, item) if not problem.transpose_a or problem.transpose_b else 1,
    )
    return (problem.op, problem.precision, problem.layout, problem.bias, units)


def kind_name(kind: tuple[Any, ...]) -> str:
    """Short name for progress lines: `addmm bfloat16 nt vector /16/16/1`."""
    op, precision, layout, bias, units = kind
    extra = "" if bias == "none" else f" {bias}"
    return f"{op} {precision} {layout}{extra} /{'/'.join(map(str, units))}"


def check_problems(problems: Sequence[MMShape], hardware: Hardware) -> None:
    """Raise if a problem cannot be timed on a chip."""
    if not problems:
        raise EmptySelectionError(
            "problems: got none; expected at least one; widen the operations, dtypes or sizes"
        )
    limit = _MEMORY_SHARE * hardware.memory_bytes
    for problem in problems:
        if problem.dtype not in TRITON_DTYPES or problem.out_dtype != problem.dtype:
            raise InvalidValueError(
                f"{problem}: got {problem.dtype} to {problem.out_dtype}; expected one of "
                f"{', '.join(TRITON_DTYPES)} to itself; choose with --dtypes"
            )
        needed = memory_needed(problem, hardware)
        if limit and needed > limit:
            raise InvalidValueError(
                f"{problem}: needs {needed / 1e9:,.1f} GB; {hardware.name} has "
                f"{hardware.memory_bytes / 1e9:,.1f} GB; leave it out or lower --max-size"
            )


def memory_needed(problem: MMShape, hardware: Hardware) -> int:
    """Bytes of device memory needed to time and check a problem; each candidate of a CPU has a
    weight of its own, and packs it from a copy."""
    needed = bytes_needed(problem) + _CHECKING_BYTES * problem.B * problem.M * problem.N
    if hardware.kind == CPU:
        copies = 2 * (len(LIBRARIES) + len(cpp_configs(problem, hardware)))
        needed += copies * problem.B * problem.K * problem.N * DTYPE_BYTES[problem.dtype]
    return needed


def _parts(members: Sequence[MMShape], chunk: int) -> Iterator[Sequence[MMShape]]:
    for start in range(0, len(members), chunk):
        yield members[start : start + chunk]
