"""Where a collection keeps its timings while it runs: nothing finished is ever lost.

Each finished problem is appended to a journal and put on disk; when a journal is full its problems
become a Parquet shard, written whole or not at all. After a kill the journal is read again up to
where it is whole, so at most the problem in progress is gone. Each collector writes files of its
own name, so several can share a directory.
"""

from __future__ import annotations

import fcntl
import os
import struct
import uuid
import zlib
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from torch_diode.files.datasets import shards
from torch_diode.files.file_errors import naming_file
from torch_diode.files.parquet import read_parquet, write_parquet
from torch_diode.types.dataset import Dataset, Provenance
from torch_diode.types.errors import EmptySelectionError, FileFaultError
from torch_diode.types.problem import MMShape

_HEAD = struct.Struct("<4sII")
_MARK = b"TDJ1"
ROWS_A_SHARD = 500_000


class TimingStore:
    """A directory of shards that one collector appends problems to."""

    def __init__(self, directory: Path, provenance: Provenance | None = None) -> None:
        self.directory = directory
        self.provenance = provenance or {}
        self._parts: list[Dataset] = []
        self._rows = 0
        with naming_file(directory):
            directory.mkdir(parents=True, exist_ok=True)
            self._recover()
            self._open_journal()

    def _open_journal(self) -> None:
        """A journal of our own, locked for as long as we live: that is how others know we do."""
        self._journal = self.directory / f".journal-{uuid.uuid4().hex[:12]}.log"
        # Unbuffered: what a full disk refused must not come back when the file is closed.
        self._stream = self._journal.open("ab", buffering=0)
        fcntl.flock(self._stream, fcntl.LOCK_EX)

    def done(self) -> set[tuple[str, MMShape]]:
        """The problems that are finished, by hardware, whoever finished them."""
        try:
            parts = [read_parquet(file) for file in shards(self.directory, ("parquet",))]
        except EmptySelectionError:
            parts = []
        found = set()
        for part in [*parts, *self._parts]:
            for row in part.problems.first.tolist():
                found.add((part.table.column("hardware")[row].as_py(), part.problem(row)))
        return found

    def append(self, finished: Dataset) -> None:
        """Keep one finished problem's timings; on disk when this returns."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, finished.table.schema) as writer:
            writer.write_table(finished.table)
        data = sink.getvalue().to_pybytes()
        with naming_file(self._journal):
            self._write_record(_HEAD.pack(_MARK, len(data), zlib.crc32(data)) + data)
        self._parts.append(finished)
        self._rows += len(finished)
        if self._rows >= ROWS_A_SHARD:
            self.flush()

    def _write_record(self, record: bytes) -> None:
        """All of it or, on a full disk, nothing of it."""
        whole = self._stream.seek(0, os.SEEK_END)
        left = memoryview(record)
        try:
            while left:
                left = left[self._stream.write(left) :]
            os.fsync(self._stream.fileno())
        except OSError:
            self._stream.truncate(whole)
            raise

    def flush(self) -> None:
        """Make a shard of what the journal holds, and start the journal anew."""
        if self._parts:
            self._write_shard(self._parts)
            self._parts, self._rows = [], 0
            with naming_file(self._journal):
                self._stream.truncate(0)

    def close(self) -> None:
        """Leave only shards behind."""
        self.flush()
        self._stream.close()
        self._journal.unlink(missing_ok=True)

    def abandon(self) -> None:
        """Leave the journal as it is, for the next collector to make a shard of."""
        self._stream.close()

    def __enter__(self) -> TimingStore:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and issubclass(kind, FileFaultError):
            # Nothing more can be written, and saying so twice would hide the first time.
            self.abandon()
        else:
            self.close()

    def _write_shard(self, parts: list[Dataset]) -> None:
        merged = Dataset.merge(parts)
        shard = self.directory / f"shard-{uuid.uuid4().hex[:12]}.parquet"
        write_parquet(shard, Dataset(merged.table, {**merged.provenance, **self.provenance}))

    def _recover(self) -> None:
        """Make shards of the journals that killed collectors left; a locked one is still in use."""
        for journal in sorted(self.directory.glob(".journal-*.log")):
            with journal.open("rb") as stream:
                try:
                    fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue
                parts = list(_records(stream.read()))
                if parts and journal.exists():
                    self._write_shard(parts)
                journal.unlink(missing_ok=True)


def _records(data: bytes) -> Iterator[Dataset]:
    """The whole records of a journal, up to the first that is not."""
    position = 0
    while position + _HEAD.size <= len(data):
        mark, size, check = _HEAD.unpack_from(data, position)
        body = data[position + _HEAD.size : position + _HEAD.size + size]
        if mark != _MARK or len(body) != size or zlib.crc32(body) != check:
            return
        with pa.ipc.open_stream(body) as reader:
            yield Dataset(reader.read_all())
        position += _HEAD.size + size
