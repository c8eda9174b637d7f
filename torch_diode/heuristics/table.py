"""A lookup table as a heuristic: candidates measured or chosen for a problem, or a range of M."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np

from torch_diode.candidates.space import position_of
from torch_diode.hardware.versions import same_release
from torch_diode.heuristics.base import Heuristic, digest
from torch_diode.types import validation
from torch_diode.types.candidate import ATEN, TRITON_TEMPLATES, Candidate
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape
from torch_diode.types.ranking import Ranking
from torch_diode.types.table import Match, Table, TableEntry

_MOST_NAMED = 3


class LookupTable(Heuristic):
    """Answers for problems it has a row for, with the row's candidates that are offered.

    `template_hashes` are those of torch's templates, `releases` the installed torch and triton. An
    entry measured with another version of its template is skipped when `strict`, and otherwise used
    with a note. An entry without a hash is compared by the table's releases; a table without those,
    as written by hand, is used as it is.

    A row for the problem itself answers before one whose range of M holds it, and that before the
    nearest row, which answers only where it is at most `nearest` away in log2. The last two have an
    order and no times: those were measured on another problem.
    """

    steady = True

    def __init__(
        self,
        table: Table,
        strict: bool = False,
        template_hashes: Mapping[str, str] | None = None,
        name: str = "table",
        releases: Mapping[str, str] | None = None,
        nearest: float = 0.0,
    ) -> None:
        self.table = table
        self.strict = strict
        self.template_hashes = dict(template_hashes or {})
        self.name = name
        self.releases = dict(releases or {})
        self.nearest = validation.fraction("table", "nearest", nearest, "a distance, 0 or more")
        self._met: dict[str, set[MMShape]] = {}
        """The problems of the rows that answered so far, by the hardware asked for."""
        self._offers: dict[tuple[MMShape, Candidate], bool] = {}
        """Whether a candidate of a row that answered was ever on offer."""

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        strict: bool = False,
        template_hashes: Mapping[str, str] | None = None,
        releases: Mapping[str, str] | None = None,
        nearest: float = 0.0,
    ) -> LookupTable:
        """From a table's file, by whose name it is called."""
        from torch_diode.files.tables import read_table

        name = f"table {Path(path).name}"
        return cls(read_table(path), strict, template_hashes, name, releases, nearest)

    def compared_with(
        self, template_hashes: Mapping[str, str], releases: Mapping[str, str], strict: bool
    ) -> LookupTable:
        """The same table, compared with these templates and releases."""
        own = (self.table, strict, template_hashes, self.name, releases, self.nearest)
        return LookupTable(*own)

    def rank(self, problem: MMShape, candidates: Candidates, hardware: Hardware) -> Ranking | None:
        """The row's candidates in the row's order; times where every one of them has one."""
        match = self.table.find(hardware.name, problem, self.nearest)
        met = self._met.setdefault(hardware.name, set())
        if match is None or (self.strict and self._other_threads(hardware)):
            return None
        met.add(match.problem)
        entries = [e for e in match.entries if not (self.strict and self._stale(e))]
        positions = [position_of(entry.candidate, candidates, problem) for entry in entries]
        chosen: dict[int, TableEntry] = {}
        for entry, position in zip(entries, positions, strict=True):
            if position is not None:
                chosen.setdefault(position, entry)
        self._remember_offers(match.problem, entries, positions, candidates.templates)
        return self._ranking(match, problem, chosen, len(candidates), hardware) if chosen else None

    def _remember_offers(
        self,
        problem: MMShape,
        entries: Sequence[TableEntry],
        positions: Sequence[int | None],
        templates: Sequence[str],
    ) -> None:
        """Keep which candidates were on offer. A CPU's library that was not counts only where
        nothing else of the row was: graphs with frozen weights offer others."""
        none = not any(position is not None for position in positions)
        for entry, position in zip(entries, positions, strict=True):
            offer = (problem, entry.candidate)
            if position is not None:
                self._offers[offer] = True
            elif none or entry.candidate.template in {*templates, *TRITON_TEMPLATES}:
                self._offers.setdefault(offer, False)

    def _ranking(
        self,
        match: Match,
        problem: MMShape,
        chosen: dict[int, TableEntry],
        count: int,
        hardware: Hardware,
    ) -> Ranking:
        order = np.fromiter(chosen, dtype=np.int64)
        times = np.full(count, np.nan)
        source = self.name
        if match.distance:
            source += f", {match.distance:.2f} in log2 from {match.problem}"
        elif match.problem != problem:
            source += f", the range of M of {match.problem}"
        elif all(entry.time_us is not None for entry in chosen.values()):
            times[order] = [entry.time_us for entry in chosen.values()]
        stale = {self._other_threads(hardware), *map(self._stale, chosen.values())}
        return Ranking(order, times, source, note="; ".join(sorted(filter(None, stale))))

    def _other_threads(self, hardware: Hardware) -> str:
        """A note where the table was measured with another number of threads."""
        measured = dict(self.table.provenance).get("threads", "")
        if not (measured and hardware.threads) or str(hardware.threads) in measured.split(", "):
            return ""
        return f"measured with {measured} threads, here are {hardware.threads}"

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
        match = self.table.find(hardware.name, problem, self.nearest)
        if match is None:
            return f"{self.name} has no row for {problem} on {hardware.name}"
        if self.strict and (reason := self._other_threads(hardware)):
            return f"{self.name}: {reason}, and it is strict"
        if self.strict and all(map(self._stale, match.entries)):
            return f"{self.name}: {self._stale(match.entries[0])}, and it is strict about {problem}"
        return f"{self.name}: none of its candidates for {problem} is on offer"

    def notes(self) -> list[str]:
        """Rows that no problem met, and candidates that were not on offer."""
        found = []
        for hardware, met in list(self._met.items()):
            rows = self.table.count(hardware)
            if not rows:
                found.append(f"no row for {hardware}, only for {', '.join(self.table.hardware)}")
            elif len(met) < rows:
                problems = (row[1] for row in self.table.of_hardware(hardware))
                example = next(problem for problem in problems if problem not in met)
                found.append(
                    f"{rows - len(met):,} of {rows:,} rows for {hardware} match no problem met so "
                    f"far, such as {example}"
                )
        missing = [f"{c} for {p}" for (p, c), offered in list(self._offers.items()) if not offered]
        if missing:
            more = f" and {len(missing) - _MOST_NAMED:,} more" if len(missing) > _MOST_NAMED else ""
            found.append(f"not on offer: {', '.join(missing[:_MOST_NAMED])}{more}")
        return [f"{self.name}: {text}" for text in found]

    def fingerprint(self) -> str:
        """The rows, the hashes and releases they are compared with, `strict` and `nearest`."""
        against = sorted({**self.template_hashes, **self.releases}.items())
        marks = [f"{name}={text}" for name, text in against]
        return digest("table", str(self.strict), str(self.nearest), self.table.digest, *marks)
