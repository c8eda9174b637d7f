"""Shape sets on disk: JSON by operation, one problem per line with its origin, or MessagePack."""

from __future__ import annotations

import os
from typing import Any

from torch_diode.files.header import check_header, header
from torch_diode.files.json import read_json, write_json
from torch_diode.files.msgpack import is_msgpack, read_msgpack, write_msgpack
from torch_diode.types.shapes import OperationShapeSet

SHAPES_VERSION = 2
_DEPTH = 3


def read_shapes(path: str | os.PathLike[str]) -> OperationShapeSet:
    """The shape set in a file, of this version or the first."""
    read = read_msgpack if is_msgpack(path) else read_json
    shapes: OperationShapeSet = read(path, shapes_from)
    return shapes


def write_shapes(shapes: OperationShapeSet, path: str | os.PathLike[str]) -> None:
    """Write a shape set atomically, as MessagePack if the name ends so."""
    if is_msgpack(path):
        write_msgpack(path, shapes_to(shapes))
    else:
        write_json(path, shapes_to(shapes), _DEPTH)


def shapes_to(shapes: OperationShapeSet) -> dict[str, Any]:
    """The JSON form of a shape set."""
    return {**header("shapes", SHAPES_VERSION), **shapes.to_dict()}


def shapes_from(data: Any) -> OperationShapeSet:
    """The shape set in JSON form."""
    if isinstance(data, dict) and "format" not in data and "operations" in data:
        from torch_diode.files.legacy import shapes_of_version_1

        return shapes_of_version_1(data)
    check_header(data, "shapes", SHAPES_VERSION)
    return OperationShapeSet.from_dict(data)
