"""Gains by a table of known times."""

from collections import Counter

import pytest

from torch_diode.files.tables import write_table
from torch_diode.hardware import known, with_threads
from torch_diode.heuristics.tuned import TunedTable
from torch_diode.integration.capture.trace import TracedProblem
from torch_diode.integration.tuned_tables import TunedFolder
from torch_diode.tuning.gains import gains_of, portable_table
from torch_diode.tuning.plan import make_plan
from torch_diode.tuning.result import TuneResult
from torch_diode.types.candidate import ATEN, ONEDNN, Candidate
from torch_diode.types.problem import MMShape
from torch_diode.types.table import Table, TableEntry

CPU = with_threads(known("amd-zen5"), 2)
FIRST, SECOND, THIRD = (MMShape("mm", 8, n, 64, dtype="float32") for n in (64, 96, 128))
TIMES = {FIRST: (100.0, 50.0), SECOND: (100.0, 99.5), THIRD: (300.0, 200.0)}
"""By ATen and by oneDNN."""


@pytest.fixture(scope="module")
def table() -> Table:
    def row(*times: float) -> tuple[TableEntry, ...]:
        entries = map(TableEntry, (Candidate(ATEN), Candidate(ONEDNN)), times)
        return tuple(sorted(entries, key=lambda entry: entry.time_us or 0.0))

    return Table(tuple((CPU.name, problem, row(*times)) for problem, times in TIMES.items()))


@pytest.fixture(scope="module")
def gains(table):
    counts = {TracedProblem(p, "cpu", 2): 10 if p == THIRD else 1 for p in TIMES}
    return gains_of(make_plan(CPU, counts, quick=True, whole=False), TunedTable(table))


def test_what_saves_most_in_all_its_calls_comes_first(gains):
    assert [gain.use.problem for gain in gains] == [THIRD, FIRST, SECOND]
    assert [gain.speedup for gain in gains] == [1.5, 2.0, 1.0]
    result = TuneResult(tuple(gains), 3, 0, (), 0.0, (), Counter())
    assert (result.own_us, result.chosen_us) == (3200.0, 2150.0)


def test_torchs_own_kernel_stays_where_another_is_faster_within_the_error_only(gains):
    assert gains[2].chosen == Candidate(ATEN)


def test_without_a_table_there_is_none():
    assert gains_of(make_plan(CPU, {}, quick=True, whole=False), None) == []


def test_a_portable_table_has_these_problems_alone(gains, table, tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_DIODE_HOME", str(tmp_path))
    folder = TunedFolder(CPU.name, 2, "2.13")
    folder.path.mkdir(parents=True)
    write_table(table, folder.table)
    portable = portable_table(gains[1:], [folder])
    first = {problem: entries[0].candidate.template for _, problem, entries in portable}
    assert first == {FIRST: ONEDNN, SECOND: ATEN}
