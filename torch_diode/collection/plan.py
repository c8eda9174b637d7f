"""The plan of a collection: any list of problems, sorted into groups that share kernels.

A kernel is compiled for a kind of problem, not for a problem: those of one kind stand together, so
that the first of them pays for compiling and the others find it done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from torch_diode.candidates.gpu.eligibility import TRITON_DTYPES
from torch_diode.candidates.gpu.k_loop import as_in_space
from torch_diode.candidates.space import candidate_space
from torch_diode.collection.groups import Group, Task
from torch_diode.collection.kernels.library import KernelLibrary
from torch_diode.collection.kernels.operands import bytes_needed
from torch_diode.collection.kernels.source import unit_of
from torch_diode.types.candidate import ATEN, DECOMPOSE_K, Candidate
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.errors import EmptySelectionError, InvalidValueError
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import DTYPE_BYTES, MMShape

CHUNK = 50
"""Problems a group: so many wait for their kernels together."""

CandidateRule = Callable[[MMShape], Candidates]

_CHECKING_BYTES = 12
"""For each element of the output: the reference, the result and their difference as float32."""
_MEMORY_SHARE = 0.9


def exhaustive(hardware: Hardware) -> CandidateRule:
    """The whole candidate space, but for splits of K: the sweep has no kernels for those."""

    def rule(problem: MMShape) -> Candidates:
        space = candidate_space(problem, hardware)
        return space.take(~space.is_template(DECOMPOSE_K))

    return rule


def listed(lists: CandidateRule, hardware: Hardware) -> CandidateRule:
    """Those of a list made elsewhere (Inductor's) that are in the candidate space."""
    whole = exhaustive(hardware)

    def rule(problem: MMShape) -> Candidates:
        wanted = {as_in_space(candidate, problem) for candidate in lists(problem)}
        space = whole(problem)
        keep = [c.template == ATEN or as_in_space(c, problem) in wanted for c in space]
        return space.take(np.array(keep, dtype=bool))

    return rule


def vendor_only(problem: MMShape) -> Candidates:
    """The vendor's kernel: all there is to time where no Triton kernel runs."""
    return Candidates.of([Candidate(ATEN)])


def plan(
    problems: Sequence[MMShape], rule: CandidateRule, library: KernelLibrary, chunk: int = CHUNK
) -> list[Group]:
    """Groups of at most `chunk` problems of one kind, kinds in the order they are first met."""
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
    """All that decides which kernels a problem needs, bar whether a block divides K.

    How M divides matters where A is read along M, how K divides where an operand is read along K.
    """
    item = DTYPE_BYTES[problem.dtype]
    units = (
        unit_of(problem.M, item) if problem.transpose_a else 1,
        unit_of(problem.N, item),
        unit_of(problem.K, item) if not problem.transpose_a or problem.transpose_b else 1,
    )
    return (problem.op, problem.precision, problem.layout, problem.bias, units)


def kind_name(kind: tuple[Any, ...]) -> str:
    """Short, for progress lines: `addmm bfloat16 nt vector /16/16/1`."""
    op, precision, layout, bias, units = kind
    extra = "" if bias == "none" else f" {bias}"
    return f"{op} {precision} {layout}{extra} /{'/'.join(map(str, units))}"


def check_problems(problems: Sequence[MMShape], hardware: Hardware) -> None:
    """Refuse what cannot be timed on a chip, before any of it is."""
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
        needed = memory_needed(problem)
        if limit and needed > limit:
            raise InvalidValueError(
                f"{problem}: needs {needed / 1e9:,.1f} GB; {hardware.name} has "
                f"{hardware.memory_bytes / 1e9:,.1f} GB; leave it out or lower --max-size"
            )


def memory_needed(problem: MMShape) -> int:
    """Device memory that timing and checking a problem takes."""
    return bytes_needed(problem) + _CHECKING_BYTES * problem.B * problem.M * problem.N


def _parts(members: Sequence[MMShape], chunk: int) -> Iterator[Sequence[MMShape]]:
    for start in range(0, len(members), chunk):
        yield members[start : start + chunk]
