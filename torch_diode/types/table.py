"""The lookup table: for a hardware and a problem, the candidates to use, best first."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from torch_diode.types import validation
from torch_diode.types.candidate import Candidate
from torch_diode.types.errors import EmptySelectionError, InvalidValueError
from torch_diode.types.problem import MMShape
from torch_diode.types.validation import SLUG, JSONText

if TYPE_CHECKING:
    from torch_diode.types.dataset import Dataset
    from torch_diode.types.timing import Timing

_RANGE = re.compile(r"([1-9]\d{0,9})-([1-9]\d{0,9})")
_DAY = r"\d{4}-\d{2}-\d{2}"


@dataclass(frozen=True)
class TableEntry:
    """A candidate, its measured time, and the source hash of the template it was measured with.

    `M` is the range of M, from and to, that the entry holds for; None for its problem alone.
    `measured` is the day of the measurement and `repeats` its number of runs.
    """

    candidate: Candidate
    time_us: float | None = None
    template_hash: str | None = None
    M: tuple[int, int] | None = None
    measured: str = ""
    repeats: int = 0

    def __post_init__(self) -> None:
        validation.instance("table entry", "candidate", self.candidate, Candidate)
        if self.time_us is not None:
            validation.positive_time("table entry", "time_us", self.time_us)
        if self.template_hash is not None:
            form = r"[0-9A-Za-z]+"
            validation.name("table entry", "template_hash", self.template_hash, form, "a hash")
        if self.M is not None and not 1 <= self.M[0] <= self.M[1] <= validation.MAX_SIZE:
            _refuse_range("{}-{}".format(*self.M))
        if self.measured:
            validation.name("table entry", "measured", self.measured, _DAY, "a day: 2026-12-31")
        validation.whole_number("table entry", "repeats", self.repeats, low=0)

    def to_dict(self) -> dict[str, Any]:
        """The flat form: the candidate's fields, then what is known of the others."""
        data = self.candidate.to_dict()
        if self.M is not None:
            data["M"] = "{}-{}".format(*self.M)
        data |= {name: value for name in _OWN if (value := getattr(self, name))}
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TableEntry:
        """Parse the flat form."""
        rest = dict(validation.mapping("table entry", data))
        own = {name: rest.pop(name) for name in _OWN if name in rest}
        text = rest.pop("M", None)
        return cls(Candidate.from_dict(rest), M=None if text is None else _range(text), **own)

    @classmethod
    def of_timing(
        cls, timing: Timing, dataset: Dataset, M: tuple[int, int] | None = None
    ) -> TableEntry:
        """The entry of a dataset's timing."""
        template_hash = dataset.template_hashes.get(timing.candidate.template)
        day = max(dataset.provenance.get("collected", ()), default="")
        return cls(timing.candidate, timing.time_us, template_hash, M, day, timing.repeats)


_OWN = ("time_us", "template_hash", "measured", "repeats")


def _range(text: Any) -> tuple[int, int]:
    found = _RANGE.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        _refuse_range(text)
    return int(found[1]), int(found[2])


def _refuse_range(text: object) -> NoReturn:
    validation.refuse("table entry", "M", text, "a range from low to high, such as 17-32")


Row = tuple[str, MMShape, tuple[TableEntry, ...]]
_KIND = ("op", "dtype", "out_dtype", "transpose_a", "transpose_b", "tf32", "bias")


class Match(NamedTuple):
    """The row that answers for a problem: the problem's own, one whose range of M holds it, or the
    nearest, at this distance: the sum of what B, M, N and K differ by, in log2."""

    problem: MMShape
    entries: tuple[TableEntry, ...]
    distance: float = 0.0


@dataclass(frozen=True)
class Table(JSONText):
    """Rows of (hardware, problem, candidates best first), each hardware and problem once.

    Rows are sorted, so that tables with the same content are equal files.
    """

    rows: tuple[Row, ...] = ()
    provenance: tuple[tuple[str, str], ...] = field(default=())

    def __post_init__(self) -> None:
        for hardware, problem, entries in self.rows:
            check_row(hardware, problem, entries)
        rows = tuple(sorted(self.rows, key=lambda row: row[:2]))
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "provenance", tuple(sorted(self.provenance)))
        if len(self._index) != len(rows):
            raise InvalidValueError("table: got a problem twice for one hardware; expected once")

    @cached_property
    def _index(self) -> dict[tuple[str, MMShape], tuple[TableEntry, ...]]:
        return {(hardware, problem): entries for hardware, problem, entries in self.rows}

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    @property
    def hardware(self) -> tuple[str, ...]:
        """The hardware names the table has rows for."""
        return tuple(sorted({row[0] for row in self.rows}))

    @cached_property
    def digest(self) -> str:
        """A hash of the rows, the same for tables with the same rows."""
        text = hashlib.sha256()
        for hardware, problem, entries in self:
            parts = [hardware, problem.key, *(str(entry.to_dict()) for entry in entries)]
            text.update("|".join([*parts, "\n"]).encode())
        return text.hexdigest()

    def count(self, hardware: str) -> int:
        """The number of rows for a hardware."""
        return sum(row[0] == hardware for row in self.rows)

    def of_hardware(self, hardware: str) -> Iterator[Row]:
        """The rows for a hardware."""
        return (row for row in self if row[0] == hardware)

    def lookup(self, hardware: str, problem: MMShape) -> tuple[TableEntry, ...]:
        """The candidates of a problem's own row, best first; empty where the table has none."""
        return self._index.get((hardware, problem), ())

    def find(self, hardware: str, problem: MMShape, nearest: float = 0.0) -> Match | None:
        """The row that answers for a problem: its own before one with a range, of those the
        narrowest, before the nearest row that is at most `nearest` away."""
        entries = self.lookup(hardware, problem)
        if entries:
            return Match(problem, entries)
        match = self._in_range(hardware, problem) if self._ranges else None
        return self._nearest(hardware, problem, nearest) if match is None and nearest else match

    @cached_property
    def _ranges(self) -> dict[tuple[str, MMShape], list[Row]]:
        """Rows with a range, by hardware and the problem without its M."""
        found: dict[tuple[str, MMShape], list[Row]] = {}
        for row in self.rows_with_range():
            found.setdefault((row[0], replace(row[1], M=1)), []).append(row)
        return found

    def rows_with_range(self) -> Iterable[Row]:
        """The rows with an entry that holds for a range of M."""
        return [row for row in self.rows if any(entry.M for entry in row[2])]

    def _in_range(self, hardware: str, problem: MMShape) -> Match | None:
        matches: list[tuple[int, float, Match]] = []
        for _, own, entries in self._ranges.get((hardware, replace(problem, M=1)), ()):
            holding = [(e, e.M) for e in entries if e.M and e.M[0] <= problem.M <= e.M[1]]
            if holding:
                low, high = holding[0][1]
                match = Match(own, tuple(entry for entry, _ in holding))
                matches.append((high - low, abs(math.log2(own.M / problem.M)), match))
        return min(matches, key=lambda found: found[:2])[2] if matches else None

    def spans(self) -> Iterator[tuple[str, MMShape, tuple[int, int]]]:
        """The hardware and problem of each row, and the M that its best entry holds for."""
        for hardware, problem, entries in self:
            yield hardware, problem, entries[0].M or (problem.M, problem.M)

    @cached_property
    def _sizes(self) -> dict[tuple[Any, ...], tuple[np.ndarray[Any, Any], list[MMShape]]]:
        """The problems of each kind by the product of their B, N and K, and log2 of that, of these
        three, and of the least and the greatest M."""
        found: dict[tuple[Any, ...], list[tuple[MMShape, tuple[int, ...]]]] = {}
        for hardware, problem, (low, high) in self.spans():
            p = problem
            sizes = (p.B * p.N * p.K, p.B, p.N, p.K, low, high)
            found.setdefault(_kind(hardware, problem), []).append((problem, sizes))
        for rows in found.values():
            rows.sort(key=lambda row: (row[1][0], row[0]))
        return {
            kind: (np.log2(np.array([sizes for _, sizes in rows], float).T), [p for p, _ in rows])
            for kind, rows in found.items()
        }

    def _nearest(self, hardware: str, problem: MMShape, most: float) -> Match | None:
        known = self._sizes.get(_kind(hardware, problem))
        if known is None:
            return None
        sizes, problems = known
        b, n, k, m = (math.log2(size) for size in (problem.B, problem.N, problem.K, problem.M))
        # The sum of the distances in B, N and K is at least that in their product.
        first, last = np.searchsorted(sizes[0], (b + n + k - most - 1e-9, b + n + k + most + 1e-9))
        if first == last:
            return None
        _, own_b, own_n, own_k, low, high = sizes[:, first:last]
        away = np.abs(own_b - b) + np.abs(own_n - n) + np.abs(own_k - k)
        away += np.maximum(np.maximum(low - m, m - high), 0)
        row = int(away.argmin())
        if away[row] > most:
            return None
        nearest = problems[first + row]
        return Match(nearest, self.lookup(hardware, nearest), float(away[row]))

    def to_dict(self) -> dict[str, Any]:
        """The JSON form: entries by hardware and by the problem's key."""
        data: dict[str, Any] = {"hardware": {name: {} for name in self.hardware}}
        for hardware, problem, entries in self:
            data["hardware"][hardware][problem.key] = [entry.to_dict() for entry in entries]
        if self.provenance:
            data["provenance"] = {name: [text] for name, text in self.provenance}
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Table:
        """Parse the JSON form, also with the header of a file."""
        known = ("format", "version", "provenance", "hardware")
        validation.known_keys("table", data, known, required=("hardware",))
        provenance = validation.provenance_of(data).items()
        rows = (
            (name, MMShape.from_key(key), entries_from(key, entries))
            for name, problems in validation.mapping("hardware", data["hardware"]).items()
            for key, entries in validation.mapping(f"{name!r:.80}", problems).items()
        )
        return cls(tuple(rows), tuple((name, ", ".join(texts)) for name, texts in provenance))

    def filter(
        self, hardware: str, problem: MMShape, candidates: Iterable[Candidate]
    ) -> list[Candidate]:
        """Those of the candidates that the table has for a problem, in their own order."""
        match = self.find(hardware, problem)
        known = {entry.candidate for entry in match.entries} if match else set()
        return [candidate for candidate in candidates if candidate in known]

    @classmethod
    def merge(cls, tables: Sequence[Table]) -> Table:
        """One table of several. Of two rows for one problem the one measured later is kept, then
        the one with more repetitions, then the one of the table that comes first."""
        kept: dict[tuple[str, MMShape], tuple[TableEntry, ...]] = {}
        texts: dict[str, dict[str, None]] = {}
        for table in tables:
            for hardware, problem, entries in table:
                before = kept.setdefault((hardware, problem), entries)
                if _measured(entries) > _measured(before):
                    kept[hardware, problem] = entries
            for name, text in table.provenance:
                texts.setdefault(name, {}).update(dict.fromkeys(filter(None, text.split(", "))))
        provenance = tuple((name, ", ".join(sorted(found))) for name, found in texts.items())
        return cls(tuple((*key, entries) for key, entries in kept.items()), provenance)

    @classmethod
    def from_dataset(cls, dataset: Dataset, k: int = 1) -> Table:
        """The k fastest candidates of every problem, each with its best time."""
        times = dataset.values("time_us")
        if not np.isfinite(times).any():
            raise EmptySelectionError("table: got no timing that ran; expected at least one")
        threads = sorted(set(dataset.values("threads").tolist()))
        if len(threads) > 1:
            counts = ", ".join(map(str, threads))
            raise InvalidValueError(
                f"table: got timings with {counts} threads; expected one number, choose one"
            )
        best = dataset.take(dataset.pairs.fastest(times))
        rows: dict[tuple[str, MMShape], list[TableEntry]] = {}
        for timing in best.take(best.problems.fastest(best.values("time_us"), k)):
            entry = TableEntry.of_timing(timing, dataset)
            rows.setdefault((timing.hardware, timing.problem), []).append(entry)
        provenance = [(n, ", ".join(dataset.texts(n))) for n in ("torch", "triton")]
        provenance += [("dataset", dataset.digest)]
        provenance += [("threads", str(count)) for count in threads if count]
        return cls(
            tuple((*key, tuple(entries)) for key, entries in rows.items()), tuple(provenance)
        )


def entries_from(key: str, entries: Any) -> tuple[TableEntry, ...]:
    """Parse the entries of a row; errors name its key."""
    validation.sequence(key, entries)
    try:
        return tuple(TableEntry.from_dict(entry) for entry in entries)
    except InvalidValueError as fault:
        raise InvalidValueError(f"{key}: {fault}") from None


def check_row(hardware: str, problem: MMShape, entries: Sequence[TableEntry]) -> None:
    """Refuse a row without candidates, with one twice, or with a range that its M is not in."""
    validation.name("table", "hardware", hardware, SLUG, "a name such as nvidia-h200")
    validation.instance("table", "problem", problem, MMShape)
    if not entries:
        raise InvalidValueError(f"table: got no candidate for {problem}; expected at least one")
    if len({entry.candidate for entry in entries}) != len(entries):
        raise InvalidValueError(f"table: got a candidate twice for {problem}; expected once")
    for entry in entries:
        if entry.M and not entry.M[0] <= problem.M <= entry.M[1]:
            raise InvalidValueError(
                f"table: got M {entry.M[0]}-{entry.M[1]} for {problem}; "
                f"expected a range with its own {problem.M} in it"
            )


def _kind(hardware: str, problem: MMShape) -> tuple[Any, ...]:
    return (hardware, *(getattr(problem, name) for name in _KIND))


def _measured(entries: Iterable[TableEntry]) -> tuple[str, int]:
    return max((entry.measured, entry.repeats) for entry in entries)
