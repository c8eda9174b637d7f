"""Read the dimensions of real models from `real_model_dimensions.json`, table by table.

A table is a list of objects; each becomes a record (a named tuple) whose fields declare the entry.
Fields with a default are optional.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeVar, get_args, get_origin, get_type_hints

DIMENSIONS = Path(__file__).with_name("real_model_dimensions.json")

Record = TypeVar("Record", bound=tuple[Any, ...])


class Precision(NamedTuple):
    """A dtype, and whether float32 products may be computed in TF32."""

    dtype: str
    tf32: bool = False


BF16 = Precision("bfloat16")
FP16 = Precision("float16")
FP32 = Precision("float32")
TF32 = Precision("float32", tf32=True)
PRECISIONS = {"bf16": BF16, "fp16": FP16, "fp32": FP32, "tf32": TF32}


def read_table(name: str, record: type[Record], path: Path = DIMENSIONS) -> tuple[Record, ...]:
    """Entries of a table as records, in the file's order."""
    tables = json.loads(path.read_text(encoding="utf-8"))
    if name not in tables:
        raise ValueError(f"{path.name}: there is no table {name!r}")
    return tuple(_list(tables[name], record, f"{path.name}: {name}"))


def _refuse(found: Any, expected: str, where: str) -> NoReturn:
    raise ValueError(f"{where}: got {found!r}; expected {expected}")


def _list(found: Any, item: Any, where: str) -> list[Any]:
    if not isinstance(found, list):
        _refuse(found, "a list", where)
    return [_value(x, item, f"{where}[{i}]") for i, x in enumerate(found)]


def _value(found: Any, wanted: Any, where: str) -> Any:
    """Value from the file converted to a record's type."""
    if wanted is Precision:
        if found not in tuple(PRECISIONS):
            _refuse(found, f"one of {', '.join(PRECISIONS)}", where)
        return PRECISIONS[found]
    if get_origin(wanted) is tuple:
        return _tuple(found, get_args(wanted), where)
    if hasattr(wanted, "_fields"):
        return _record(found, wanted, where)
    if type(found) is not wanted:
        _refuse(found, f"a value of type {wanted.__name__}", where)
    return found


def _tuple(found: Any, items: tuple[Any, ...], where: str) -> tuple[Any, ...]:
    if items[-1] is Ellipsis:
        return tuple(_list(found, items[0], where))
    if not isinstance(found, list) or len(found) != len(items):
        _refuse(found, f"a list of {len(items)}", where)
    return tuple(_value(x, item, where) for x, item in zip(found, items, strict=True))


def _record(found: Any, record: Any, where: str) -> Any:
    if not isinstance(found, dict):
        _refuse(found, "an object", where)
    where = f"{where} ({found['name']})" if "name" in found else where
    types = get_type_hints(record)
    missing = [f for f in types if f not in found and f not in record._field_defaults]
    unknown = [f for f in found if f not in types]
    if missing or unknown:
        faults = [f"no {f!r}" for f in missing] + [f"unknown {f!r}" for f in unknown]
        raise ValueError(f"{where}: {', '.join(faults)}")
    return record(**{f: _value(x, types[f], f"{where}.{f}") for f, x in found.items()})
