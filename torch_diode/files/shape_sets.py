"""Shape sets on disk: JSON by operation, one problem per line with its origin."""

from __future__ import annotations

import os
from typing import Any

from torch_diode.files.header import check_header, header
from torch_diode.files.json import read_json, write_json
from torch_diode.types import validation
from torch_diode.types.shapes import CountedShape, OperationShapeSet, ShapeSet

SHAPES_VERSION = 2
_DEPTH = 3


def read_shapes(path: str | os.PathLike[str]) -> OperationShapeSet:
    """The shape set in a file, of this version or the first."""
    shapes: OperationShapeSet = read_json(path, shapes_from)
    return shapes


def write_shapes(
    shapes: OperationShapeSet, path: str | os.PathLike[str], overwrite: bool = True
) -> None:
    """Write a shape set atomically."""
    write_json(path, shapes_to(shapes), _DEPTH, overwrite)


def shapes_to(shapes: OperationShapeSet) -> dict[str, Any]:
    """The JSON form of a shape set."""
    data = header("shapes", SHAPES_VERSION)
    data["operations"] = {
        op: [{k: v for k, v in shape.to_dict().items() if k != "op"} for shape in members]
        for op, members in shapes.operations
    }
    return data


def shapes_from(data: Any) -> OperationShapeSet:
    """The shape set in JSON form."""
    if isinstance(data, dict) and "format" not in data and "operations" in data:
        from torch_diode.files.legacy import shapes_of_version_1

        return shapes_of_version_1(data)
    check_header(data, "shapes", SHAPES_VERSION)
    validation.known_keys("shapes", data, ("format", "version", "operations"), ("operations",))
    operations = validation.mapping("operations", data["operations"])
    return OperationShapeSet(tuple((op, _members(op, raw)) for op, raw in operations.items()))


def _members(op: str, raw: Any) -> ShapeSet:
    owner = f"operations {op!r:.40}"
    items = [validation.mapping(owner, item) for item in validation.sequence(owner, raw)]
    return ShapeSet(tuple(CountedShape.from_dict({"op": op, **item}) for item in items))
