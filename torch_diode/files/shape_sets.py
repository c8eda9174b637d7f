"""Shape sets on disk: JSON, operation by operation, one problem a line with its origin."""

from __future__ import annotations

import os
from typing import Any

from torch_diode.files import legacy
from torch_diode.files.file_errors import naming_file
from torch_diode.files.header import check_header, header
from torch_diode.files.json import read_json, write_json
from torch_diode.types import validation
from torch_diode.types.errors import InvalidValueError
from torch_diode.types.shapes import CountedShape, OperationShapeSet, ShapeSet

SHAPES_VERSION = 2
_DEPTH = 3


def read_shapes(path: str | os.PathLike[str]) -> OperationShapeSet:
    """The shape set in a file, of this version or the first."""
    data = read_json(path)
    with naming_file(path):
        return shapes_from(data)


def write_shapes(shapes: OperationShapeSet, path: str | os.PathLike[str]) -> None:
    """A shape set as a file, whole or not at all."""
    write_json(path, shapes_to(shapes), _DEPTH)


def shapes_to(shapes: OperationShapeSet) -> dict[str, Any]:
    """The shape set as JSON has it."""
    data = header("shapes", SHAPES_VERSION)
    data["operations"] = {
        op: [{k: v for k, v in shape.to_dict().items() if k != "op"} for shape in members]
        for op, members in shapes.operations
    }
    return data


def shapes_from(data: Any) -> OperationShapeSet:
    """The shape set JSON holds."""
    if isinstance(data, dict) and "format" not in data and "operations" in data:
        return legacy.shapes_of_version_1(data)
    check_header(data, "shapes", SHAPES_VERSION)
    validation.known_keys("shapes", data, ("format", "version", "operations"), ("operations",))
    operations = data["operations"]
    if not isinstance(operations, dict):
        raise InvalidValueError("operations: got no object; expected one")
    return OperationShapeSet(tuple((op, _members(op, raw)) for op, raw in operations.items()))


def _members(op: str, raw: Any) -> ShapeSet:
    if not isinstance(raw, list) or not all(isinstance(item, dict) for item in raw):
        raise InvalidValueError(f"operations {op!r:.40}: got no list of objects; expected one")
    return ShapeSet(tuple(CountedShape.from_dict({"op": op, **item}) for item in raw))
