"""A dataset as a tree: hardware → operation → problem → timings. JSON and MessagePack hold it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from torch_diode.files import legacy
from torch_diode.files.header import check_header, header, provenance_of
from torch_diode.types import schema as spec
from torch_diode.types import validation
from torch_diode.types.dataset import Dataset
from torch_diode.types.errors import InvalidValueError
from torch_diode.types.problem import PROBLEM_FIELDS, MMShape

_ROW_NAMES = (*spec.CANDIDATE_NAMES, "time_us", "spread", "repeats", "status")
_ROW_DEFAULTS = {name: spec.BY_NAME[name].default for name in _ROW_NAMES}
_ENTRY_NAMES = ("problem", "measured", "timings")


def to_tree(dataset: Dataset) -> dict[str, Any]:
    """The tree of a dataset. Timings measured in one way stand together under their problem."""
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
            "measured": {name: getattr(first, name) for name in spec.MEASURED_NAMES},
            "timings": rows[end - int(groups.counts[number]) : end],
        }
        operations = hardware.setdefault(first.hardware, {})
        operations.setdefault(first.problem.op, []).append(entry)
    tree["hardware"] = hardware
    return tree


def _rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    """Each row's candidate and result, what has its default left out."""
    names = [n for n in _ROW_NAMES if n != "template"]
    columns = [_plain(table.column(name)) for name in names]
    defaults = [_ROW_DEFAULTS[name] for name in names]
    templates = table.column("template").to_pylist()
    for template, *values in zip(templates, *columns, strict=True):
        given = zip(names, values, defaults, strict=True)
        yield {
            "template": template,
            **{n: value for n, value, default in given if value != default},
        }


def _plain(column: pa.ChunkedArray) -> list[Any]:
    """Python values; a single-precision time as the shortest number that reads back as it."""
    if column.type != pa.float32():
        return list(column.to_pylist())
    values = column.combine_chunks().to_numpy(zero_copy_only=False)
    return [None if text == "nan" else float(text) for text in values.astype(str)]


def from_tree(tree: Any) -> Dataset:
    """The dataset of a tree, of this version or the first."""
    if isinstance(tree, dict) and "format" not in tree and "hardware" in tree:
        return legacy.dataset_of_version_1(tree)
    check_header(tree, "dataset", spec.SCHEMA_VERSION)
    validation.known_keys(
        "dataset", tree, ("format", "version", "provenance", "hardware"), ("hardware",)
    )
    provenance = provenance_of(tree)
    parts = list(_entries(tree["hardware"]))
    if not parts:
        return Dataset(Dataset.empty().table, provenance)
    sizes = np.array([len(timings) for *_, timings in parts])
    columns: dict[str, pa.Array] = {"hardware": _spread([p[0] for p in parts], sizes, spec.TEXT)}
    for name in PROBLEM_FIELDS:
        heads = [getattr(problem, name) for _, problem, _, _ in parts]
        columns[name] = _spread(heads, sizes, spec.BY_NAME[name].type)
    for name in spec.MEASURED_NAMES:
        heads = [measured[name] for _, _, measured, _ in parts]
        columns[name] = _spread(heads, sizes, spec.BY_NAME[name].type)
    rows = [row for *_, timings in parts for row in timings]
    named = set().union(*rows)
    validation.known_keys("timing", dict.fromkeys(named), _ROW_NAMES)
    for name in _ROW_NAMES:
        if name in named:  # the dataset fills in what no row names
            columns[name] = row_column(rows, name)
    return Dataset(pa.table(columns), provenance)


def _entries(hardware: Any) -> Iterator[tuple[str, MMShape, dict[str, str], list[Any]]]:
    for name, operations in _items("hardware", hardware):
        for op, entries in _items(f"hardware {name!r:.80}", operations):
            if not isinstance(entries, list):
                where = f"{name!r:.80} {op!r:.40}"
                raise InvalidValueError(f"{where}: got no list of problems; expected one")
            for entry in entries:
                owner = f"{name!r:.80} {op!r:.40} entry"
                validation.known_keys(owner, entry, _ENTRY_NAMES, ("problem", "timings"))
                yield name, _problem(op, entry["problem"]), _measured(entry), _timings(entry)


def _items(owner: str, data: Any) -> Iterable[tuple[str, Any]]:
    if not isinstance(data, dict):
        raise InvalidValueError(f"{owner}: got {type(data).__name__}; expected an object")
    return data.items()


def _problem(op: str, data: Any) -> MMShape:
    if not isinstance(data, dict) or "op" in data:
        raise InvalidValueError(f"{op!r:.40}: got {data!r:.80}; expected a problem, without its op")
    return MMShape.from_dict({"op": op, **data})


def _measured(entry: dict[str, Any]) -> dict[str, str]:
    measured = entry.get("measured", {})
    validation.known_keys("measured", measured, spec.MEASURED_NAMES)
    return {name: measured.get(name, spec.BY_NAME[name].default) for name in spec.MEASURED_NAMES}


def _timings(entry: dict[str, Any]) -> list[Any]:
    timings = entry["timings"]
    if not isinstance(timings, list) or not all(type(row) is dict for row in timings):
        raise InvalidValueError("timings: got something else than a list of objects")
    return timings


def row_column(rows: list[dict[str, Any]], name: str) -> pa.Array:
    """One field of all rows as an array of its type, defaults filled in."""
    default = _ROW_DEFAULTS[name]
    return _array([row.get(name, default) for row in rows], name)


def _array(values: list[Any], name: str) -> pa.Array:
    column = spec.BY_NAME[name]
    if column.type == spec.TEXT:
        wanted: tuple[type, ...] = (str,)
    else:
        wanted = (int, float) if column.type == pa.float32() else (int,)
    allowed = {*wanted, type(None)} if column.nullable else set(wanted)
    strange = set(map(type, values)) - allowed
    if strange:
        value = next(v for v in values if type(v) in strange)
        names = " or ".join(t.__name__ for t in wanted)
        raise InvalidValueError(f"timing field {name!r}: got {value!r:.60}; expected {names}")
    try:
        return pa.array(values, pa.string() if column.type == spec.TEXT else column.type)
    except (pa.ArrowException, OverflowError, UnicodeEncodeError) as fault:
        raise InvalidValueError(f"timing field {name!r}: {fault!s:.120}") from None


def _spread(heads: list[Any], sizes: Any, type_: pa.DataType) -> pa.Array:
    """One value a problem, repeated for each of its rows."""
    try:
        values = pa.array(heads, pa.string() if type_ == spec.TEXT else type_)
    except (pa.ArrowException, TypeError, UnicodeEncodeError) as fault:
        raise InvalidValueError(f"dataset: {fault!s:.120}") from None
    if type_ == spec.TEXT:
        values = values.dictionary_encode()
    return values.take(pa.array(np.repeat(np.arange(len(heads)), sizes)))
