"""The dataset: timings as columns, checked on construction."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from torch_diode.types import schema as spec
from torch_diode.types import validation
from torch_diode.types.candidate import Candidate, TritonGEMMConfig, config_of
from torch_diode.types.candidate_arrays import NUMBER_FIELDS, Candidates
from torch_diode.types.errors import InvalidValueError
from torch_diode.types.grouping import Groups, column_numbers, group, number_rows
from torch_diode.types.problem import BATCHED, MMShape
from torch_diode.types.timing import DUPLICATES, Timing

Provenance = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, eq=False)
class Dataset:
    """Timings as columns; rows become objects when accessed.

    `provenance` describes the whole: names with their values, which a merge unites, such as the
    dates of collection and, as `templates`, `name=hash` of each template.
    """

    table: pa.Table
    provenance: Provenance = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "table", spec.conform(self.table))
        _check_unique(self.table)
        object.__setattr__(self, "provenance", provenance_of(self.provenance))

    @classmethod
    def from_columns(
        cls, values: Mapping[str, Any], provenance: Provenance | None = None
    ) -> Dataset:
        """From lists or arrays by column name; columns with a default may be left out."""
        try:
            table = pa.table(dict(values))
        except (pa.ArrowException, TypeError) as fault:
            reason = (str(fault).splitlines() or [""])[0]
            raise InvalidValueError(f"dataset columns: {reason:.160}") from None
        return cls(table, provenance or {})

    @classmethod
    def from_timings(
        cls, timings: Iterable[Timing], provenance: Provenance | None = None
    ) -> Dataset:
        """From row objects: for tests and small sets, not for bulk."""
        rows = [_row(timing) for timing in timings]
        arrays = {
            c.name: pa.array([row.get(c.name, c.default) for row in rows], c.type)
            for c in spec.COLUMNS
        }
        return cls(pa.table(arrays), provenance or {})

    def add_timing(
        self,
        hardware: str,
        op: str,
        problem: MMShape,
        candidate: Candidate | TritonGEMMConfig,
        time_us: float,
    ) -> Dataset:
        """Add a timing in place, infinity for one that did not run, and return the dataset.

        For small sets: each call checks all of it again. `op` is the problem's, and a config alone
        is one of the op's plain Triton template.
        """
        validation.instance("add_timing", "problem", problem, MMShape)
        validation.one_of("add_timing", "op", op, (problem.op,))
        if isinstance(candidate, TritonGEMMConfig):
            candidate = Candidate("triton::bmm" if op in BATCHED else "triton::mm", candidate)
        ran = time_us != math.inf
        status = "ok" if ran else "failed"
        timing = Timing(hardware, problem, candidate, time_us if ran else None, status)
        grown = Dataset.merge([self, Dataset.from_timings([timing])])
        vars(self).clear()  # cached properties too
        vars(self).update(vars(grown))
        return self

    @classmethod
    def empty(cls) -> Dataset:
        """No timings at all."""
        return cls.from_timings(())

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __getitem__(self, row: int) -> Timing:
        return _timing({c.name: self.table.column(c.name)[row].as_py() for c in spec.COLUMNS})

    def __iter__(self) -> Iterator[Timing]:
        for batch in self.table.to_batches(max_chunksize=4096):
            yield from map(_timing, batch.to_pylist())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Dataset):
            return NotImplemented
        return self.provenance == other.provenance and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def values(self, name: str) -> npt.NDArray[Any]:
        """A number column as a numpy array; a missing time is NaN."""
        array = self.table.column(name).combine_chunks()
        return np.asarray(array.to_numpy(zero_copy_only=False))

    def codes(self, name: str) -> tuple[npt.NDArray[np.int16], list[str]]:
        """A text column as codes and the texts they stand for."""
        array = self.table.column(name).combine_chunks()
        if isinstance(array, pa.ChunkedArray):
            return np.zeros(0, dtype=np.int16), []
        return array.indices.to_numpy(), array.dictionary.to_pylist()

    def texts(self, name: str) -> list[str]:
        """The distinct texts of a text column, sorted."""
        return sorted(pc.unique(self.table.column(name).cast(pa.string())).to_pylist())

    @property
    def template_hashes(self) -> dict[str, str]:
        """The source hash of each measured template that has exactly one."""
        return single_hashes(self.provenance.get("templates", ()))

    @cached_property
    def problems(self) -> Groups:
        """Rows grouped by hardware, threads and problem."""
        return self.group(spec.GROUP_NAMES)

    @property
    def pairs(self) -> Groups:
        """Groups of the timings of one candidate on one problem."""
        return self.group((*spec.GROUP_NAMES, *spec.CANDIDATE_NAMES))

    def group(self, names: Sequence[str]) -> Groups:
        """Rows grouped by the values of these columns."""
        return group(self.table, names)

    def problem(self, row: int) -> MMShape:
        """The problem of one row."""
        return MMShape(**{n: self.table.column(n)[row].as_py() for n in spec.PROBLEM_NAMES})

    def candidates(self, rows: npt.NDArray[Any]) -> Candidates:
        """The candidates of these rows."""
        template, names = self.codes("template")
        fields = {name: self.values(name)[rows].astype(np.int32) for name in NUMBER_FIELDS}
        return Candidates(tuple(names), template[rows].astype(np.int32), fields)

    def take(self, rows: npt.NDArray[Any]) -> Dataset:
        """The rows with these numbers (or under this mask), in this order."""
        rows = np.asarray(rows)
        if rows.dtype == np.bool_:
            return Dataset(self.table.filter(pa.array(rows)), self.provenance)
        return Dataset(self.table.take(pa.array(rows)), self.provenance)

    def filter(self, **wanted: str | Sequence[str]) -> Dataset:
        """The rows whose text columns (hardware, op, dtype, template, …) have the wanted values."""
        mask = np.ones(len(self), dtype=bool)
        for name, texts in wanted.items():
            column = spec.BY_NAME.get(name)
            if column is None or column.type != spec.TEXT:
                known = [c.name for c in spec.COLUMNS if c.type == spec.TEXT]
                raise InvalidValueError(f"filter: got {name!r}; expected one of {', '.join(known)}")
            keep = {texts} if isinstance(texts, str) else set(texts)
            codes, categories = self.codes(name)
            mask &= np.isin(codes, [i for i, text in enumerate(categories) if text in keep])
        return self.take(mask)

    @classmethod
    def merge(cls, parts: Sequence[Dataset], duplicates: str = "refuse") -> Dataset:
        """One dataset from several. A timing in two of them is refused, or the `first` or the
        `last` one kept."""
        validation.one_of("merge", "duplicates", duplicates, DUPLICATES)
        if not parts:
            return cls.empty()
        table = pa.concat_tables([part.table for part in parts]).unify_dictionaries()
        if duplicates != "refuse":
            table = table.combine_chunks()
            keys = group(table, spec.KEY_NAMES)
            keep = keys.first if duplicates == "first" else _last(keys)
            table = table.take(pa.array(np.sort(keep)))
        merged = merged_provenance(part.provenance for part in parts)
        if "templates" in merged:
            # The hashes of one part do not hold for a part without any: mark those as unknown.
            unknown = [part for part in parts if "templates" not in part.provenance]
            names = {name for part in unknown for name in part.texts("template")}
            marks = {f"{name}=" for name in names if name.startswith("triton::")}
            merged["templates"] = tuple(sorted({*merged["templates"], *marks}))
        return cls(table, merged)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the timings, the same whatever their order or the file form."""
        rows = np.zeros(len(self), dtype=np.uint64)
        for column in spec.COLUMNS:
            words = self._words(column)
            # Without it, a dataset of a GPU keeps the digest it had before CPUs had threads.
            if column.name != "threads" or words.any():
                rows = _mix(rows, words)
        return hashlib.sha256(np.sort(rows).tobytes()).hexdigest()

    def _words(self, column: spec.Column) -> npt.NDArray[np.uint64]:
        if column.type == spec.TEXT:
            codes, texts = self.codes(column.name)
            words = [
                int.from_bytes(hashlib.sha256(t.encode()).digest()[:8], "little") for t in texts
            ]
            return np.array(words, dtype=np.uint64)[codes] if words else codes.astype(np.uint64)
        values = self.values(column.name)
        if values.dtype == np.float32:
            values = np.where(np.isnan(values), np.float32(-1), values).view(np.uint32)
        return values.astype(np.uint64)


def single_hashes(templates: Iterable[str]) -> dict[str, str]:
    """The hash of each template that has exactly one, from `name=hash`."""
    pairs = [text.partition("=") for text in templates]
    names = [name for name, _, _ in pairs]
    return {name: text for name, _, text in pairs if text and names.count(name) == 1}


def provenance_of(given: Provenance) -> Provenance:
    """Names in order, each with its distinct values in order."""
    for name, texts in given.items():
        validation.instance("dataset", "provenance name", name, str)
        if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
            validation.refuse("dataset", f"provenance {name!r:.80}", texts, "several texts")
    return {name: tuple(sorted(set(given[name]))) for name in sorted(given)}


def merged_provenance(parts: Iterable[Provenance]) -> dict[str, tuple[str, ...]]:
    """All values of each name in several provenances."""
    merged: dict[str, tuple[str, ...]] = {}
    for part in parts:
        for name, texts in part.items():
            merged[name] = tuple(sorted({*merged.get(name, ()), *texts}))
    return merged


def _mix(rows: npt.NDArray[np.uint64], words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Fold one word per row into 64 bits per row (splitmix64's finaliser)."""
    x = (rows * np.uint64(0x9E3779B97F4A7C15)) ^ (words + np.uint64(0x632BE59BD9B4E019))
    x ^= x >> np.uint64(30)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(27)
    x *= np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)))


def _last(keys: Groups) -> npt.NDArray[np.int64]:
    last = np.empty(len(keys), dtype=np.int64)
    last[keys.ids] = np.arange(len(keys.ids))
    return last


def _row(timing: Timing) -> dict[str, Any]:
    return {
        "hardware": timing.hardware,
        **timing.problem.to_dict(),
        **timing.candidate.to_dict(),
        **{name: getattr(timing, name) for name in (*spec.RESULT_NAMES, *spec.MEASURED_NAMES)},
    }


def _timing(row: dict[str, Any]) -> Timing:
    template = row["template"]
    return Timing(
        row["hardware"],
        MMShape(**{n: row[n] for n in spec.PROBLEM_NAMES}),
        Candidate(template, config_of(template, row), row["split_k"]),
        _shortest(row["time_us"]),
        spread=_shortest(row["spread"]),
        **{n: row[n] for n in ("status", "repeats", *spec.MEASURED_NAMES)},
    )


def _shortest(value: float | None) -> float | None:
    """A single-precision number as the shortest that reads back as it: 12.3, not 12.30000019."""
    return None if value is None else float(str(np.float32(value)))


def _check_unique(table: pa.Table) -> None:
    """Refuse duplicate timings. Problems and candidates are numbered separately: there are few of
    each, so their pairs can be counted without hashing rows."""
    problems = group(table, (*spec.GROUP_NAMES, *spec.MEASURED_NAMES)).ids
    columns = [column_numbers(table.column(name)) for name in spec.CANDIDATE_NAMES]
    pairs = number_rows(columns, table.num_rows)
    pairs += problems * (int(pairs.max(initial=0)) + 1)
    if int(pairs.max(initial=0)) < 16 * max(table.num_rows, 2**16):
        twice = int(np.bincount(pairs).max(initial=0)) > 1
    else:
        twice = len(np.unique(pairs)) < len(pairs)
    if not twice:
        return
    _, first, inverse = np.unique(pairs, return_index=True, return_inverse=True)
    row = int(np.argmax(first[inverse] != np.arange(len(pairs))))
    raise InvalidValueError(
        f"dataset: got the same timing twice, in rows {int(first[inverse][row])} and {row}; "
        "expected each problem, candidate, method and release once; "
        "merge with duplicates 'first' or 'last' to keep one"
    )
