"""The lookup table: for a hardware and a problem, the candidates to use, best first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from torch_diode.types import validation
from torch_diode.types.candidate import Candidate
from torch_diode.types.errors import EmptySelectionError, InvalidValueError
from torch_diode.types.problem import MMShape
from torch_diode.types.schema import CANDIDATE_NAMES, GROUP_NAMES
from torch_diode.types.validation import SLUG

if TYPE_CHECKING:
    from torch_diode.types.dataset import Dataset


@dataclass(frozen=True)
class TableEntry:
    """A candidate, its measured time, and the source hash of the template it was measured with."""

    candidate: Candidate
    time_us: float | None = None
    template_hash: str | None = None

    def __post_init__(self) -> None:
        validation.instance("table entry", "candidate", self.candidate, Candidate)
        if self.time_us is not None:
            validation.positive_time("table entry", "time_us", self.time_us)
        if self.template_hash is not None:
            form = r"[0-9A-Za-z]+"
            validation.name("table entry", "template_hash", self.template_hash, form, "a hash")

    def to_dict(self) -> dict[str, Any]:
        """The flat form: the candidate's fields, then the time and the hash where known."""
        data = self.candidate.to_dict()
        if self.time_us is not None:
            data["time_us"] = self.time_us
        if self.template_hash is not None:
            data["template_hash"] = self.template_hash
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TableEntry:
        """Parse the flat form."""
        rest = dict(validation.mapping("table entry", data))
        time_us, template_hash = rest.pop("time_us", None), rest.pop("template_hash", None)
        return cls(Candidate.from_dict(rest), time_us, template_hash)


Row = tuple[str, MMShape, tuple[TableEntry, ...]]


@dataclass(frozen=True)
class Table:
    """Rows of (hardware, problem, candidates best first), each hardware and problem once.

    Rows are sorted, so that tables with the same content are equal files.
    """

    rows: tuple[Row, ...] = ()
    provenance: tuple[tuple[str, str], ...] = field(default=())

    def __post_init__(self) -> None:
        for hardware, problem, entries in self.rows:
            validation.name("table", "hardware", hardware, SLUG, "a name such as nvidia-h200")
            validation.instance("table", "problem", problem, MMShape)
            if not entries:
                raise InvalidValueError(
                    f"table: got no candidate for {problem}; expected at least one"
                )
            if len({entry.candidate for entry in entries}) != len(entries):
                raise InvalidValueError(
                    f"table: got a candidate twice for {problem}; expected once"
                )
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

    def lookup(self, hardware: str, problem: MMShape) -> tuple[TableEntry, ...]:
        """The candidates for a problem, best first; empty where the table has none."""
        return self._index.get((hardware, problem), ())

    @classmethod
    def from_dataset(cls, dataset: Dataset, k: int = 1) -> Table:
        """The k fastest candidates of every problem, each with its best time."""
        times = dataset.values("time_us")
        if not np.isfinite(times).any():
            raise EmptySelectionError("table: got no timing that ran; expected at least one")
        pairs = dataset.group((*GROUP_NAMES, *CANDIDATE_NAMES))
        best = dataset.take(pairs.fastest(times))
        hashes = dataset.template_hashes
        rows: dict[tuple[str, MMShape], list[TableEntry]] = {}
        for timing in best.take(best.problems.fastest(best.values("time_us"), k)):
            template_hash = hashes.get(timing.candidate.template)
            entry = TableEntry(timing.candidate, timing.time_us, template_hash)
            rows.setdefault((timing.hardware, timing.problem), []).append(entry)
        provenance = tuple((n, ", ".join(dataset.texts(n))) for n in ("torch", "triton"))
        return cls(
            tuple((*key, tuple(entries)) for key, entries in rows.items()),
            (*provenance, ("dataset", dataset.digest)),
        )
