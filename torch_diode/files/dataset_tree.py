"""A dataset as a tree: hardware → operation → problem → timings. JSON and MessagePack hold it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from torch_diode.files.header import check_header, header, provenance_of
from torch_diode.types import schema as spec
from torch_diode.types import validation
from torch_diode.types.dataset import Dataset
from torch_diode.types.errors import InvalidValueError
from torch_diode.types.problem import MMShape

_ROW_NAMES = (*spec.CANDIDATE_NAMES, "time_us", "spread", "repeats", "status")
_ROW_DEFAULTS = {name: spec.BY_NAME[name].default for name in _ROW_NAMES}
_ENTRY_NAMES = ("problem", "measured", "timings")


def to_tree(dataset: Dataset) -> dict[str, Any]:
    """The tree of a dataset. Timings of one problem and one way of measuring form one entry."""
    tree = header("dataset", spec.SCHEMA_VERSION, dataset.provenance)
    hardware: dict[str, dict[str, list[Any]]] = {}
    groups = dataset.group((*spec.GROUP_NAMES, *spec.MEASURED_NAMES))
    order = np.argsort(groups.ids, kind="stable")
    ends = np.cumsum(groups.counts)
    rows = list(_rows(dataset.table.take(pa.array(order))))
    for number, end in enumerate(ends.tolist()):
        first = dataset[int(groups.first[number])]
        entry = {
            "problem": {f: v for f, v in first.problem.to_dict().items() if f != "op"},
            "measured": {
                name: getattr(first, name)
                for name in spec.MEASURED_NAMES
                if name != "threads" or first.threads
            },
            "timings": rows[end - int(groups.counts[number]) : end],
        }
        operations = hardware.setdefault(first.hardware, {})
        operations.setdefault(first.problem.op, []).append(entry)
    tree["hardware"] = hardware
    return tree


def _rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    """The candidate and result of each row, without the fields that have their default."""
    defaults = _ROW_DEFAULTS.items()
    columns = [_plain(table.column(name)) for name in _ROW_NAMES]
    for values in zip(*columns, strict=True):
        fields = zip(defaults, values, strict=True)
        yield {name: value for (name, default), value in fields if value != default}


def _plain(column: pa.ChunkedArray) -> list[Any]:
    """Python values; a single-precision number as the shortest text that reads back as it."""
    if column.type != pa.float32():
        return list(column.to_pylist())
    values = column.combine_chunks().to_numpy(zero_copy_only=False)
    return [None if text == "nan" else float(text) for text in values.astype(str)]


def from_tree(tree: Any) -> Dataset:
    """The dataset of a tree, of this version or the first."""
    if isinstance(tree, dict) and "format" not in tree and "hardware" in tree:
        from torch_diode.files.legacy import dataset_of_version_1

        return dataset_of_version_1(tree)
    check_header(tree, "dataset", spec.SCHEMA_VERSION)
    validation.known_keys(
        "dataset", tree, ("format", "version", "provenance", "hardware"), ("hardware",)
    )
    provenance = provenance_of(tree)
    parts = list(_entries(tree["hardware"]))
    if not parts:
        return Dataset(Dataset.empty().table, provenance)
    sizes = np.array([len(timings) for _, timings in parts])
    columns: dict[str, pa.Array] = {
        name: _repeated([head[name] for head, _ in parts], sizes, name) for name in parts[0][0]
    }
    rows = [row for _, timings in parts for row in timings]
    used = set().union(*rows)
    validation.known_keys("timing", dict.fromkeys(used), _ROW_NAMES)
    for name, default in _ROW_DEFAULTS.items():
        if name in used:  # the dataset fills in other columns
            columns[name] = _array([row.get(name, default) for row in rows], name)
    return Dataset(pa.table(columns), provenance)


def _entries(hardware: Any) -> Iterator[tuple[dict[str, Any], list[Any]]]:
    """The columns that the timings of an entry share, and those timings."""
    for name, operations in validation.mapping("hardware", hardware).items():
        operations = validation.mapping(f"hardware {name!r:.80}", operations)
        for op, entries in operations.items():
            owner = f"{name!r:.80} {op!r:.40}"
            for entry in validation.sequence(owner, entries):
                validation.known_keys(f"{owner} entry", entry, _ENTRY_NAMES, ("problem", "timings"))
                problem = _problem(op, entry["problem"]).to_dict()
                yield {"hardware": name, **problem, **_measured(entry)}, _timings(entry)


def _problem(op: str, data: Any) -> MMShape:
    if not isinstance(data, dict) or "op" in data:
        raise InvalidValueError(f"{op!r:.40}: got {data!r:.80}; expected a problem, without its op")
    return MMShape.from_dict({"op": op, **data})


def _measured(entry: dict[str, Any]) -> dict[str, Any]:
    measured = entry.get("measured", {})
    validation.known_keys("measured", measured, spec.MEASURED_NAMES)
    return {name: measured.get(name, spec.BY_NAME[name].default) for name in spec.MEASURED_NAMES}


def _timings(entry: dict[str, Any]) -> list[Any]:
    timings = validation.sequence("timings", entry["timings"])
    if not all(type(row) is dict for row in timings):
        raise InvalidValueError("timings: got a list of something else; expected objects")
    return timings


def _array(values: list[Any], name: str) -> pa.Array:
    column = spec.BY_NAME[name]
    if column.type == spec.TEXT:
        wanted: tuple[type, ...] = (str,)
    else:
        wanted = (int, float) if column.type == pa.float32() else (int,)
    allowed = {*wanted, type(None)} if column.nullable else set(wanted)
    wrong = set(map(type, values)) - allowed
    if wrong:
        value = next(v for v in values if type(v) in wrong)
        names = " or ".join(t.__name__ for t in wanted)
        raise InvalidValueError(f"timing field {name!r}: got {value!r:.60}; expected {names}")
    try:
        return pa.array(values, pa.string() if column.type == spec.TEXT else column.type)
    except (pa.ArrowException, OverflowError, UnicodeEncodeError) as fault:
        raise InvalidValueError(f"timing field {name!r}: {fault!s:.120}") from None


def _repeated(heads: list[Any], sizes: npt.NDArray[np.int64], name: str) -> pa.Array:
    """A column with one value per entry, repeated for each of the entry's rows."""
    type_ = spec.BY_NAME[name].type
    try:
        values = pa.array(heads, pa.string() if type_ == spec.TEXT else type_)
    except (pa.ArrowException, TypeError, UnicodeEncodeError) as fault:
        raise InvalidValueError(f"dataset: {fault!s:.120}") from None
    if type_ == spec.TEXT:
        values = values.dictionary_encode()
    return values.take(pa.array(np.repeat(np.arange(len(heads)), sizes)))
