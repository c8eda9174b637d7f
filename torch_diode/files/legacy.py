"""Files of version 1, which had no header.

Version 1 wrote every type as the JSON of its fields: a problem had `M_dtype`, `K_dtype`,
`out_dtype`, `out_size` and `out_stride` and no layout, a config also held what follows from the
problem (`name`, `grid`, `EVEN_K`, `ALLOW_TF32`, …), and times were milliseconds, infinity for a
kernel that did not run.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator
from typing import Any

from torch_diode.hardware.catalog import normalise
from torch_diode.types import validation
from torch_diode.types.candidate import Candidate, TritonGEMMConfig
from torch_diode.types.dataset import Dataset
from torch_diode.types.errors import InvalidValueError
from torch_diode.types.problem import BATCHED, MMShape
from torch_diode.types.shapes import CountedShape, OperationShapeSet
from torch_diode.types.table import Row, Table, TableEntry
from torch_diode.types.timing import Timing

_CONFIG = ("block_m", "block_n", "block_k", "group_m", "num_stages", "num_warps")


def dataset_of_version_1(tree: dict[str, Any]) -> Dataset:
    """hardware → operation → solution → problem → timed_configs of config and time."""
    timings: dict[tuple[str, MMShape, Candidate], Timing] = {}
    for hardware, op, problem_text, solution in _solutions(tree):
        for timed in _list(solution, "timed_configs"):
            if not isinstance(timed, dict) or "config" not in timed or "time" not in timed:
                raise InvalidValueError(f"version 1: got {timed!r:.80}; expected config and time")
            failed = timed["time"] == math.inf
            time_us = None if failed else _microseconds(timed["time"])
            raw = _parsed(timed["config"])
            problem = _problem(op, _parsed(problem_text), tf32=raw.get("ALLOW_TF32") is True)
            candidate = _candidate(op, raw)
            status = "failed" if failed else "ok"
            timing = Timing(hardware, problem, candidate, time_us, status, method="feedback")
            known = timings.get((hardware, problem, candidate))
            # Version 1 could hold a config several times; the fastest was disturbed least.
            if known is None or (known.time_us or math.inf) > (timing.time_us or math.inf):
                timings[hardware, problem, candidate] = timing
    return Dataset.from_timings(timings.values(), {"read_from": ("version 1",)})


def table_of_version_1(tree: dict[str, Any]) -> Table:
    """hardware → operation → solution → problem → config list, best first."""
    rows: list[Row] = []
    for hardware, op, problem_text, solution in _solutions(tree):
        problem = _problem(op, _parsed(problem_text))
        candidates = dict.fromkeys(
            _candidate(op, _parsed(raw)) for raw in _list(solution, "config")
        )
        rows.append((hardware, problem, tuple(TableEntry(c) for c in candidates)))
    return Table(tuple(rows))


def shapes_of_version_1(tree: dict[str, Any]) -> OperationShapeSet:
    """operations → op → shapes, or a bare list of shapes, whose op follows from their batch."""
    if "shapes" in tree:
        return OperationShapeSet.of(_bare_shape(_parsed(raw)) for raw in _list(tree, "shapes"))
    shapes = [
        CountedShape(_problem(op, _parsed(raw)))
        for op, shape_set in _object(tree, "operations").items()
        for raw in _list(shape_set, "shapes")
    ]
    return OperationShapeSet.of(shapes)


def _bare_shape(raw: dict[str, Any]) -> CountedShape:
    if "op" in raw:
        return CountedShape.from_dict(raw)
    return CountedShape(_problem("mm" if raw.get("B", 1) == 1 else "bmm", raw))


_CSV_COLUMNS = ("name", "B", "M", "K", "N", "Transposed")


def shapes_of_csv(text: str) -> OperationShapeSet:
    """A problem per line: `name` is its op and `Transposed` the layout of its second operand. The
    dtype is float16, as in version 1, unless there is a column `dtype`."""
    reader = csv.DictReader(text.splitlines(), skipinitialspace=True)
    try:
        return OperationShapeSet.of(map(_csv_shape, reader))
    except (InvalidValueError, csv.Error) as fault:
        raise InvalidValueError(f"line {reader.line_num}: {fault}") from None


def _csv_shape(row: dict[str, Any]) -> MMShape:
    missing = [name for name in _CSV_COLUMNS[:-1] if not row.get(name)]
    if missing:
        columns = ", ".join(_CSV_COLUMNS)
        raise InvalidValueError(f"got no {missing[0]!r}; expected the columns {columns}")
    transposed = (row.get("Transposed") or "False").strip().capitalize()
    validation.one_of("shape", "Transposed", transposed, ("True", "False"))
    b, m, n, k = (_number(row[name]) for name in "BMNK")
    dtype = _dtype((row.get("dtype") or "float16").strip())
    is_transposed = transposed == "True"
    return MMShape(row["name"].strip(), m, n, k, B=b, dtype=dtype, transpose_b=is_transposed)


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InvalidValueError(f"got the size {text!r:.20}; expected a whole number") from None


def _microseconds(milliseconds: Any) -> float:
    return validation.positive_time("version 1", "time", milliseconds) * 1000


def _solutions(tree: dict[str, Any]) -> Iterator[tuple[str, str, str, Any]]:
    for name, hardware in _object(tree, "hardware").items():
        for op, operation in _object(hardware, "operation").items():
            for problem, solution in _object(operation, "solution").items():
                yield normalise(name), op, problem, solution


def _object(data: Any, key: str) -> dict[str, Any]:
    return validation.mapping(f"version 1 {key}", data.get(key) if isinstance(data, dict) else data)


def _list(data: Any, key: str) -> list[Any]:
    return validation.sequence(
        f"version 1 {key}", data.get(key) if isinstance(data, dict) else data
    )


def _parsed(raw: Any) -> dict[str, Any]:
    """A type of version 1: an object, or the text of one."""
    if isinstance(raw, str):
        try:
            raw = json.loads(raw)
        except (ValueError, RecursionError):
            raise InvalidValueError(f"version 1: got {raw!r:.80}; expected JSON") from None
    return validation.mapping("version 1", raw)


def _problem(op: str, raw: dict[str, Any], tf32: bool = False) -> MMShape:
    missing = [name for name in ("M", "N", "K", "M_dtype") if name not in raw]
    if missing:
        raise InvalidValueError(f"version 1 problem: got no {missing[0]!r}; expected one")
    dtype = _dtype(raw["M_dtype"])
    return MMShape(
        op,
        raw["M"],
        raw["N"],
        raw["K"],
        B=raw.get("B", 1) if op in BATCHED else 1,
        dtype=dtype,
        out_dtype=_dtype(raw.get("out_dtype") or dtype),
        transpose_b=_is_transposed(raw),
        tf32=tf32 and dtype == "float32",
    )


def _is_transposed(raw: dict[str, Any]) -> bool:
    """Version 1 noted a transposed operand of a shape set by swapping the output's sizes."""
    size = raw.get("out_size")
    m, n = raw["M"], raw["N"]
    return isinstance(size, list) and size[-2:] == [n, m] != [m, n]


def _dtype(name: Any) -> str:
    if isinstance(name, dict):  # as version 1 wrote it in MessagePack
        name = name.get("__torch_dtype__")
    return str(name).removeprefix("torch.")


def _candidate(op: str, raw: dict[str, Any]) -> Candidate:
    template = "triton::bmm" if op in BATCHED else "triton::mm"
    config = TritonGEMMConfig.from_dict({name: raw[name] for name in _CONFIG if name in raw})
    return Candidate(template, config)
