"""Parquet: the canonical form of a dataset, one column per field, a checksum on every page.

Pages hold all numbers, and pyarrow checks each page against its checksum. The footer has none: of
its bits, flipped one by one, none changes a timing, only text of the provenance.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from torch_diode.files.atomic import replacing
from torch_diode.files.file_errors import naming_file, read_whole
from torch_diode.files.header import check_header, header, provenance_of
from torch_diode.types import schema as spec
from torch_diode.types.dataset import Dataset
from torch_diode.types.errors import InvalidValueError

_METADATA_KEY = b"torch_diode"
_KIND = "dataset"

Provenance = Mapping[str, tuple[str, ...]]
Columns = Sequence[spec.Column]


def write_parquet(path: str | os.PathLike[str], dataset: Dataset, overwrite: bool = True) -> None:
    """Write a dataset as a Parquet file atomically."""
    write_columns(path, dataset.table, dataset.provenance, _KIND, spec.COLUMNS, overwrite)


def read_parquet(path: str | os.PathLike[str]) -> Dataset:
    """A dataset from a Parquet file, its checksums verified."""
    with naming_file(path):
        return Dataset(*read_columns(path, _KIND, spec.COLUMNS))


def write_columns(
    path: str | os.PathLike[str],
    table: pa.Table,
    provenance: Provenance,
    kind: str,
    columns: Columns,
    overwrite: bool,
) -> None:
    """Write the columns of any kind of dataset."""
    metadata = json.dumps(header(kind, spec.SCHEMA_VERSION, provenance))
    # As a stream: pyarrow takes no path that is not UTF-8.
    with replacing(path, overwrite) as temporary, temporary.open("wb") as stream:
        pq.write_table(
            table.replace_schema_metadata({_METADATA_KEY: metadata}),
            stream,
            compression="zstd",
            compression_level=9,
            use_dictionary=[c.name for c in columns if c.type != pa.float32()],
            use_byte_stream_split=[c.name for c in columns if c.type == pa.float32()],
            write_page_checksum=True,
        )


def read_columns(
    path: str | os.PathLike[str], kind: str, columns: Columns
) -> tuple[pa.Table, Provenance]:
    """The columns and the provenance of a file of this kind."""
    try:
        return _read_whole(Path(path), kind, {column.name for column in columns})
    except (pa.ArrowException, OverflowError, MemoryError, UnicodeDecodeError) as fault:
        raise InvalidValueError(f"not a whole Parquet file: {_sentence(fault)}") from None
    except OSError as fault:
        if fault.errno is not None:
            raise
        raise InvalidValueError(f"not a whole Parquet file: {_sentence(fault)}") from None


def is_of_kind(path: str | os.PathLike[str], kind: str) -> bool:
    """True if a Parquet file's header says that it is of this kind."""
    try:
        metadata = pq.read_schema(path).metadata or {}
        data = json.loads(metadata.get(_METADATA_KEY, b"null"))
    except (pa.ArrowException, OSError, ValueError, RecursionError):
        return False
    return isinstance(data, dict) and data.get("format") == f"torch-diode {kind}"


def _read_whole(path: Path, kind: str, names: Set[str]) -> tuple[pa.Table, Provenance]:
    data = read_whole(path)
    if not data:
        raise InvalidValueError("got an empty file; expected a dataset")
    with pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True) as file:
        rows = file.metadata.num_rows
        provenance = _provenance(file.metadata.metadata or {}, kind)
        if not 0 <= rows <= 1000 * len(data) + 1_000_000:
            raise InvalidValueError(f"got {rows} rows in {len(data)} bytes; the file is damaged")
        # Column by column, each made one array at once: the whole is never held twice.
        arrays = {name: _column(file, name, names) for name in file.schema_arrow.names}
    for name, array in arrays.items():
        if len(array) != rows:
            raise InvalidValueError(f"got {len(array)} values of {name!r} for {rows} rows")
    return pa.table(arrays), provenance


def _provenance(metadata: dict[bytes, bytes], kind: str) -> Provenance:
    if _METADATA_KEY not in metadata:
        raise InvalidValueError("got Parquet without torch-diode's header; expected a dataset")
    try:
        data: Any = json.loads(metadata[_METADATA_KEY])
    except (ValueError, RecursionError):
        raise InvalidValueError("got a header that is not JSON; the file is damaged") from None
    check_header(data, kind, spec.SCHEMA_VERSION)
    return provenance_of(data)


def _column(file: pq.ParquetFile, name: str, names: Set[str]) -> pa.Array:
    if name not in names:
        raise InvalidValueError(f"got an unknown column {name!r:.80}; expected a dataset's")
    column = file.read(columns=[name], use_threads=False).column(0)
    column.validate(full=True)
    if not column.num_chunks:
        return pa.array([], column.type)
    return pa.concat_arrays(column.unify_dictionaries().chunks)


def _sentence(fault: BaseException) -> str:
    return (str(fault).splitlines() or [type(fault).__name__])[0][:160]
