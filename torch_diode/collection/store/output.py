"""Partial output of a collection: the timings so far and the settings they are collected with.

While a collection runs, the directory `F.parts` beside its output `F` holds the store's shards and
journals and the settings of the command. A rerun continues from it; when all problems are timed,
they are merged into the output and the directory is deleted.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import signal
import weakref
from collections.abc import Callable, Mapping
from io import BufferedWriter, FileIO
from pathlib import Path
from typing import Any

from torch_diode.collection.store.journal import DISCARDED, TimingStore
from torch_diode.files.atomic import refuse_existing, write_text
from torch_diode.files.datasets import FORMS, form_of, read_dataset, write_dataset
from torch_diode.files.file_errors import naming_file
from torch_diode.files.json import loads
from torch_diode.types.dataset import Dataset, Provenance
from torch_diode.types.errors import DiodeError, FileFaultError, InvalidValueError

SETTINGS = "settings.txt"
"""JSON with another ending: the `.json` files of a directory are read as datasets."""
FILE_NAME = "timings"
FINISHED = "settings"
"""Provenance key of the settings digest in a finished output."""

_locked: weakref.WeakSet[BufferedWriter | FileIO] = weakref.WeakSet()
"""Files this process has locked."""


def _release_locks() -> None:
    """Release inherited locks in a forked worker, so that the journal of a killed collector can be
    recovered, and leave Ctrl-C to the collector."""
    if _locked:
        for stream in list(_locked):
            stream.close()
        signal.signal(signal.SIGINT, signal.SIG_IGN)


os.register_at_fork(after_in_child=_release_locks)


class WatchedStore(TimingStore):
    """A store that calls `on_append` with every problem appended."""

    on_append: Callable[[Dataset], None] | None = None

    def _open_journal(self) -> None:
        super()._open_journal()
        _locked.add(self._stream)

    def append(self, finished: Dataset, discarded: int = 0) -> None:
        """Store the timings of a finished problem, then call `on_append`."""
        super().append(finished, discarded)
        if self.on_append is not None:
            self.on_append(finished)


class PartialOutput:
    """The directory beside an output, locked by one collector at a time."""

    def __init__(self, output: Path, settings: Mapping[str, Any]) -> None:
        self.output = output
        self.directory = output.with_name(f"{output.name}.parts")
        self._settings = json.loads(json.dumps(dict(settings)))
        with naming_file(self.directory):
            self.directory.mkdir(parents=True, exist_ok=True)
            self._lock = (self.directory / ".lock").open("ab")
        _locked.add(self._lock)
        self._acquire_lock()
        self._check_settings()

    def _acquire_lock(self) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._lock.close()
            raise FileFaultError(
                f"{self.directory}: another collection is writing here; wait for it or choose "
                "another --output"
            ) from None

    def _check_settings(self) -> None:
        path = self.directory / SETTINGS
        saved = _read_settings(path)
        if saved is None:
            self._refuse_foreign()
            write_text(path, json.dumps(self._settings, indent=1))
            return
        for name in dict.fromkeys([*saved, *self._settings]):
            before, now = saved.get(name), self._settings.get(name)
            if before != now:
                self.close()
                raise FileFaultError(
                    f"{self.directory}: holds timings collected with {name} {_shortened(before)}; "
                    f"got {_shortened(now)}; give the same options to continue, choose another "
                    "--output, or delete that directory"
                )

    def _refuse_foreign(self) -> None:
        """Refuse a directory of somebody else's files, which would be deleted in the end."""
        others = [path.name for path in self.directory.iterdir() if not path.name.startswith(".")]
        if others:
            self.close()
            raise FileFaultError(
                f"{self.directory}: got a directory that no collection made, with "
                f"{others[0]!r:.60}; expected none; choose another --output"
            )

    def store(self, provenance: Provenance) -> WatchedStore:
        """Create the store in this directory."""
        return WatchedStore(self.directory, provenance)

    def finish(self, form: str, before: Dataset | None = None, overwrite: bool = True) -> Dataset:
        """Write all timings to the output, then delete the directory. Those of `before` are kept
        too, without what was timed again."""
        merged = read_dataset(self.directory, ("parquet",), duplicates="first")
        if before is not None:
            merged = Dataset.merge([before, merged], duplicates="last")
        counts = [int(text.split()[0]) for text in merged.provenance.get(DISCARDED, ())]
        dataset = Dataset(merged.table, {**merged.provenance, DISCARDED: (str(sum(counts)),)})
        write_dataset(dataset, self.output, form, overwrite)
        self.remove()
        return dataset

    def remove(self) -> None:
        """Delete the directory."""
        self.close()
        with naming_file(self.directory):
            shutil.rmtree(self.directory)

    def close(self) -> None:
        """Release the directory."""
        self._lock.close()


def output_file(output: Path, form: str | None) -> tuple[Path, str]:
    """File and format for an `--output`: the file itself, or one in the directory named."""
    with naming_file(output):
        is_directory = output.is_dir() or not output.suffix
    if is_directory:
        form = form or FORMS[0]
        return output / f"{FILE_NAME}.{form}", form
    ending = form_of(output)
    if form not in (None, ending):
        raise FileFaultError(
            f"{output}: got the ending .{ending}; expected .{form}, which --format names"
        )
    return output, ending


def check_writable(output: Path, overwrite: bool, option: str = "--output") -> None:
    """Raise if an output exists or cannot be written."""
    refuse_existing(output, overwrite)
    with naming_file(output):
        if output.is_dir():
            raise FileFaultError(f"{output}: got a directory; expected the name of a file")
        nearest = next(path for path in output.absolute().parents if path.exists())
        if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
            raise FileFaultError(
                f"{output}: {nearest} is not a writable directory; choose another {option}"
            )


def settings_digest(settings: Mapping[str, Any]) -> str:
    """Digest of the settings, stored in the provenance of a finished output."""
    text = json.dumps(dict(settings), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def check_finished(output: Path, settings: Mapping[str, Any]) -> None:
    """Raise unless an existing output was collected with these settings."""
    digests: tuple[str, ...] = ()
    with contextlib.suppress(DiodeError):
        digests = read_dataset(output).provenance.get(FINISHED, ())
    if digests != (settings_digest(settings),):
        raise FileFaultError(
            f"{output}: exists already, and is not known to be collected with these options; "
            "choose another name, or give --overwrite to collect it again or, to "
            "collect-and-train, --skip-collection to use it as it is"
        )


def _read_settings(path: Path) -> dict[str, Any] | None:
    with naming_file(path):
        data = path.read_bytes() if path.exists() else None
    if data is None:
        return None
    try:
        settings = loads(data)
    except InvalidValueError:
        settings = None
    if not isinstance(settings, dict):
        raise FileFaultError(
            f"{path}: got invalid settings; expected JSON; the timings beside it are whole: read "
            f"them with `torch-diode convert {path.parent} --output F`, or choose another --output"
        )
    return settings


def _shortened(value: Any) -> str:
    text = "not given" if value is None else json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."
