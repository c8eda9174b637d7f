"""A lookup table as a heuristic: candidates measured or chosen for exactly one problem."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property

import numpy as np

from torch_diode.candidates.space import position_of
from torch_diode.hardware.versions import same_release
from torch_diode.heuristics.base import Heuristic, digest
from torch_diode.types.candidate import ATEN
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape
from torch_diode.types.ranking import Ranking
from torch_diode.types.table import Table, TableEntry


class LookupTable(Heuristic):
    """Answers for problems it has a row for, with the row's candidates that are offered.

    `template_hashes` are those of torch's templates, `releases` the installed torch and triton. An
    entry measured with another version of its template is skipped when `strict`, and otherwise used
    with a note. An entry without a hash is compared by the table's releases; a table without those,
    as written by hand, is used as it is.
    """

    steady = True

    def __init__(
        self,
        table: Table,
        strict: bool = False,
        template_hashes: Mapping[str, str] | None = None,
        name: str = "table",
        releases: Mapping[str, str] | None = None,
    ) -> None:
        self.table = table
        self.strict = strict
        self.template_hashes = dict(template_hashes or {})
        self.name = name
        self.releases = dict(releases or {})

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        strict: bool = False,
        template_hashes: Mapping[str, str] | None = None,
        releases: Mapping[str, str] | None = None,
    ) -> LookupTable:
        """From a table's file."""
        from torch_diode.files.tables import read_table

        return cls(read_table(path), strict, template_hashes, releases=releases)

    def rank(self, problem: MMShape, candidates: Candidates, hardware: Hardware) -> Ranking | None:
        """The row's candidates in the row's order; times where every one of them has one."""
        entries = self.table.lookup(hardware.name, problem)
        chosen: dict[int, TableEntry] = {}
        for entry in entries:
            if self.strict and self._stale(entry):
                continue
            position = position_of(entry.candidate, candidates, problem)
            if position is not None:
                chosen.setdefault(position, entry)
        return self._ranking(chosen, len(candidates)) if chosen else None

    def _ranking(self, chosen: dict[int, TableEntry], count: int) -> Ranking:
        order = np.fromiter(chosen, dtype=np.int64)
        times = np.full(count, np.nan)
        if all(entry.time_us is not None for entry in chosen.values()):
            times[order] = [entry.time_us for entry in chosen.values()]
        stale = sorted({why for entry in chosen.values() if (why := self._stale(entry))})
        return Ranking(order, times, self.name, note="; ".join(stale))

    def _stale(self, entry: TableEntry) -> str:
        """The reason why an entry is out of date; empty if it is not, or nothing is known."""
        template = entry.candidate.template
        now = self.template_hashes.get(template)
        if template == ATEN:
            return ""
        if None not in (now, entry.template_hash):
            return f"template changed since: {template}" if now != entry.template_hash else ""
        return self._other_releases

    @cached_property
    def _other_releases(self) -> str:
        measured = {name: text.split(", ") for name, text in self.table.provenance if text}
        others = [
            f"{name} {', '.join(measured[name])}, this is {here}"
            for name, here in self.releases.items()
            if name in measured and not same_release(here, measured[name])
        ]
        return f"measured under {' and '.join(others)}" if others else ""

    def why_abstained(self, problem: MMShape, candidates: Candidates, hardware: Hardware) -> str:
        """No row, only stale entries, or none of the row's candidates offered."""
        if self.rank(problem, candidates, hardware) is not None:
            return ""
        entries = self.table.lookup(hardware.name, problem)
        if not entries:
            return f"{self.name} has no row for {problem} on {hardware.name}"
        if self.strict and all(map(self._stale, entries)):
            return f"{self.name}: {self._stale(entries[0])}, and it is strict about {problem}"
        return f"{self.name}: none of its candidates for {problem} is on offer"

    def fingerprint(self) -> str:
        """The rows, the hashes and releases they are compared with, and `strict`."""
        against = sorted({**self.template_hashes, **self.releases}.items())
        marks = [f"{name}={text}" for name, text in against]
        return digest("table", self.name, str(self.strict), self._content, *marks)

    @cached_property
    def _content(self) -> str:
        rows = (
            "|".join([hardware, problem.key, *(str(entry.to_dict()) for entry in entries)])
            for hardware, problem, entries in self.table
        )
        return digest(*rows)
