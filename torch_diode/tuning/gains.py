"""Gains: what a program's problems take with torch's own choice and with the kept table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from torch_diode.files.tables import read_table
from torch_diode.heuristics import policy
from torch_diode.heuristics.tuned import ERROR, TunedTable
from torch_diode.integration.tuned_tables import TunedFolder
from torch_diode.tuning.plan import Plan, Task, Use
from torch_diode.types.candidate import ATEN, CPP_GEMM, PACKED, Candidate
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.hardware import Hardware
from torch_diode.types.table import Table, TableEntry


@dataclass(frozen=True)
class Gain:
    """A problem of the program with torch's own kernel and the one chosen now, by measured
    microseconds."""

    use: Use
    hardware: Hardware
    chosen: Candidate
    own_us: float
    chosen_us: float

    @property
    def speedup(self) -> float:
        """Factor by which it became faster."""
        return self.own_us / self.chosen_us


def gains_of(plan: Plan, table: TunedTable | None) -> list[Gain]:
    """A gain per problem that is measured, what it saves in all most first."""
    if table is None:
        return []
    tasks = {task.problem: task for task in plan.tasks}
    found = [
        gain
        for use in plan.uses
        if (task := tasks.get(use.problem)) is not None
        and (gain := _gain(use, task, table, plan.hardware)) is not None
    ]
    return sorted(found, key=lambda g: (-g.use.count * (g.own_us - g.chosen_us), -g.own_us))


def _gain(use: Use, task: Task, table: TunedTable, hardware: Hardware) -> Gain | None:
    candidates = task.candidates if use.frozen else _plain(task.candidates)
    ranking = table.rank(use.problem, candidates, hardware)
    own = candidates.position(Candidate(use.own))
    if ranking is None or own is None:
        return None
    row = int(policy.single_choice_order(ranking, candidates, use.own)[0])
    times = ranking.predicted_us
    return Gain(use, hardware, candidates[row], float(times[own]), float(times[row]))


def _plain(candidates: Candidates) -> Candidates:
    """Those that need no constant weight."""
    return Candidates.of(c for c in candidates if c.template not in (*PACKED, CPP_GEMM))


def portable_table(gains: Iterable[Gain], folders: Sequence[TunedFolder]) -> Table:
    """The kept rows of these problems alone; torch's own kernels come first where the gain of
    another is within the error, since a table of the user's is followed to the letter."""
    wanted = {(gain.hardware.name, gain.use.problem) for gain in gains}
    tables = [read_table(folder.table) for folder in folders if folder.table.exists()]
    rows = {
        row[:2]: (*row[:2], tuple(sorted(row[2], key=_with_doubt)))
        for table in tables
        for row in table
        if row[:2] in wanted
    }
    provenance = {name: text for table in tables for name, text in table.provenance}
    return Table(tuple(rows.values()), tuple(provenance.items()))


def _with_doubt(entry: TableEntry) -> float:
    is_own = entry.candidate.template in (ATEN, *PACKED)
    return (entry.time_us or 0.0) * (1 - ERROR if is_own else 1.0)
