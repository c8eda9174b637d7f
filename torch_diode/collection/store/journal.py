"""Crash-safe storage of the timings of a running collection.

Each finished problem is appended to a journal and synced to disk; a full journal becomes a Parquet
shard, written atomically. After a kill, the complete records of the journal are recovered. Each
collector has files of its own, so several can share a directory.
"""

from __future__ import annotations

import fcntl
import os
import struct
import uuid
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from torch_diode.files.datasets import shards
from torch_diode.files.file_errors import naming_file
from torch_diode.files.parquet import read_parquet, write_parquet
from torch_diode.types.dataset import Dataset, Provenance
from torch_diode.types.errors import EmptySelectionError, FileFaultError
from torch_diode.types.problem import MMShape

_HEADER = struct.Struct("<4sII")
_MAGIC = b"TDJ1"
ROWS_PER_SHARD = 500_000
DISCARDED = "discarded samples"
"""Provenance key of the number of samples that were taken again, since the machine was busy or
slept while they were taken."""


class TimingStore:
    """A directory of shards that one collector appends problems to."""

    def __init__(self, directory: Path, provenance: Provenance | None = None) -> None:
        self.directory = directory
        self.provenance = provenance or {}
        self._parts: list[Dataset] = []
        self._rows = self._discarded = 0
        with naming_file(directory):
            directory.mkdir(parents=True, exist_ok=True)
            self._recover()
            self._open_journal()

    def _open_journal(self) -> None:
        """Create a journal, locked while this process lives so that others do not recover it."""
        self._journal = self.directory / f".journal-{uuid.uuid4().hex[:12]}.log"
        # Unbuffered: bytes that a full disk refused must not be written when the file is closed.
        self._stream = self._journal.open("ab", buffering=0)
        fcntl.flock(self._stream, fcntl.LOCK_EX)

    def done(self) -> set[tuple[str, int, MMShape]]:
        """Hardware, threads and problem of everything finished, by any collector."""
        try:
            parts = [read_parquet(file) for file in shards(self.directory, ("parquet",))]
        except EmptySelectionError:
            parts = []
        problems = set()
        for part in [*parts, *self._parts]:
            for row in part.problems.first.tolist():
                hardware, threads = (
                    part.table.column(name)[row].as_py() for name in ("hardware", "threads")
                )
                problems.add((hardware, threads, part.problem(row)))
        return problems

    def append(self, finished: Dataset, discarded: int = 0) -> None:
        """Store the timings of a finished problem, and the number of samples that were discarded
        with it; on disk when this returns."""
        sink = pa.BufferOutputStream()
        table = finished.table.replace_schema_metadata({DISCARDED: str(discarded)})
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        data = sink.getvalue().to_pybytes()
        # Before the record is written: an interrupt after that must not lose it at `close`.
        self._parts.append(finished)
        self._rows += len(finished)
        self._discarded += discarded
        with naming_file(self._journal):
            self._write_record(_HEADER.pack(_MAGIC, len(data), zlib.crc32(data)) + data)
        if self._rows >= ROWS_PER_SHARD:
            self.flush()

    def _write_record(self, record: bytes) -> None:
        """Append a record completely or, on a full disk, not at all."""
        end = self._stream.seek(0, os.SEEK_END)
        remaining = memoryview(record)
        try:
            while remaining:
                remaining = remaining[self._stream.write(remaining) :]
            os.fsync(self._stream.fileno())
        except OSError:
            self._stream.truncate(end)
            raise

    def flush(self) -> None:
        """Write the journal's problems to a shard and empty the journal."""
        if self._parts:
            self._write_shard(self._parts, self._discarded)
            self._parts, self._rows, self._discarded = [], 0, 0
            with naming_file(self._journal):
                self._stream.truncate(0)

    def close(self) -> None:
        """Write what is left to a shard and delete the journal."""
        self.flush()
        self._stream.close()
        self._journal.unlink(missing_ok=True)

    def abandon(self) -> None:
        """Leave the journal for the next collector to recover."""
        self._stream.close()

    def __enter__(self) -> TimingStore:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and issubclass(kind, FileFaultError):
            # Nothing more can be written, and a second error would hide the first.
            self.abandon()
        else:
            self.close()

    def _write_shard(self, parts: Sequence[Dataset], discarded: int) -> None:
        merged = Dataset.merge(parts)
        shard = self.directory / f"shard-{uuid.uuid4().hex[:12]}.parquet"
        # With the shard's name: a merge must not take the equal counts of two shards for one.
        counts = {DISCARDED: (f"{discarded} in {shard.stem}",)} if discarded else {}
        provenance = {**merged.provenance, **self.provenance, **counts}
        write_parquet(shard, Dataset(merged.table, provenance))

    def _recover(self) -> None:
        """Write shards of the journals of killed collectors; a locked one is still in use."""
        for journal in sorted(self.directory.glob(".journal-*.log")):
            with journal.open("rb") as stream:
                try:
                    fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue
                records = list(_records(stream.read()))
                if records and journal.exists():
                    parts, discarded = zip(*records, strict=True)
                    self._write_shard(parts, sum(discarded))
                journal.unlink(missing_ok=True)


def _records(data: bytes) -> Iterator[tuple[Dataset, int]]:
    """Yield the records of a journal, with the samples discarded, up to the first incomplete
    one."""
    position = 0
    while position + _HEADER.size <= len(data):
        magic, size, checksum = _HEADER.unpack_from(data, position)
        body = data[position + _HEADER.size : position + _HEADER.size + size]
        if magic != _MAGIC or len(body) != size or zlib.crc32(body) != checksum:
            return
        with pa.ipc.open_stream(body) as reader:
            table = reader.read_all()
        yield Dataset(table), int((table.schema.metadata or {}).get(DISCARDED.encode(), 0))
        position += _HEADER.size + size
