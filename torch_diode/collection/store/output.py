"""An output that is being collected: its timings so far, and what they were asked for with.

Beside the output `F` lies the directory `F.parts` while the collection runs, with the store's
shards and journals and the settings of the command. A rerun continues there; when all problems
are timed, the parts become one file and go.
"""

from __future__ import annotations

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

from torch_diode.collection.store.journal import TimingStore
from torch_diode.files.atomic import write_text
from torch_diode.files.datasets import FORMS, form_of, read_dataset, write_dataset
from torch_diode.files.file_errors import naming_file
from torch_diode.types.dataset import Dataset, Provenance
from torch_diode.types.errors import FileFaultError

SETTINGS = "settings.txt"
"""JSON, but not called so: a directory's `.json` files are read as datasets."""
FILE_NAME = "timings"
FINISHED = "settings"
"""The provenance that a finished output has of its settings."""

_held: weakref.WeakSet[BufferedWriter | FileIO] = weakref.WeakSet()
"""Files whose locks tell that this process lives."""


def _let_go() -> None:
    """In a forked worker: a lock it inherited would outlive a killed collector, whose journal
    would then never be recovered; and Ctrl-C is for the collector to handle."""
    if _held:
        for stream in list(_held):
            stream.close()
        signal.signal(signal.SIGINT, signal.SIG_IGN)


os.register_at_fork(after_in_child=_let_go)


class WatchedStore(TimingStore):
    """A store that tells of every problem it has been given."""

    tell: Callable[[Dataset], None] | None = None

    def _open_journal(self) -> None:
        super()._open_journal()
        _held.add(self._stream)

    def append(self, finished: Dataset) -> None:
        """Keep one finished problem's timings, then tell."""
        super().append(finished)
        if self.tell is not None:
            self.tell(finished)


class PartialOutput:
    """The directory beside an output, held by one collector at a time."""

    def __init__(self, output: Path, settings: Mapping[str, Any]) -> None:
        self.output = output
        self.directory = output.with_name(f"{output.name}.parts")
        self._settings = json.loads(json.dumps(dict(settings)))
        with naming_file(self.directory):
            self.directory.mkdir(parents=True, exist_ok=True)
            self._lock = (self.directory / ".lock").open("ab")
        _held.add(self._lock)
        self._hold()
        self._check_settings()

    def _hold(self) -> None:
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
        there = _read_settings(path)
        if there is None:
            write_text(path, json.dumps(self._settings, indent=1))
            return
        for name in dict.fromkeys([*there, *self._settings]):
            before, now = there.get(name), self._settings.get(name)
            if before != now:
                self.close()
                raise FileFaultError(
                    f"{self.directory}: holds timings collected with {name} {_shown(before)}; "
                    f"got {_shown(now)}; give the same options to continue, choose another "
                    "--output, or delete that directory"
                )

    def store(self, provenance: Provenance) -> WatchedStore:
        """Where the timings go."""
        return WatchedStore(self.directory, provenance)

    def finish(self, form: str) -> Dataset:
        """All timings as one file, written whole; the parts are removed after that."""
        dataset = read_dataset(self.directory, ("parquet",), duplicates="first")
        write_dataset(dataset, self.output, form)
        self.close()
        with naming_file(self.directory):
            shutil.rmtree(self.directory)
        return dataset

    def close(self) -> None:
        """Let another collector have the directory."""
        self._lock.close()


def output_file(output: Path, form: str | None) -> tuple[Path, str]:
    """The file an `--output` stands for and its form: itself, or one in the directory named."""
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
    """Refuse an output that is there, or that could not be written, before anything is timed."""
    with naming_file(output):
        there = output.exists()
        if there and not overwrite:
            raise FileFaultError(
                f"{output}: exists already; choose another name or give --overwrite"
            )
        if output.is_dir():
            raise FileFaultError(f"{output}: got a directory; expected the name of a file")
        nearest = next(path for path in output.absolute().parents if path.exists())
        if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
            raise FileFaultError(
                f"{output}: {nearest} is no directory that can be written; choose another {option}"
            )


def settings_digest(settings: Mapping[str, Any]) -> str:
    """What a finished output keeps of its settings, in its provenance."""
    text = json.dumps(dict(settings), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def check_finished(output: Path, settings: Mapping[str, Any]) -> None:
    """Refuse an output that is there, unless it was collected with these settings."""
    kept = read_dataset(output).provenance.get(FINISHED, ())
    if kept != (settings_digest(settings),):
        raise FileFaultError(
            f"{output}: exists already, and is not known to be collected with these options; "
            "choose another name, or give --overwrite to collect it again or --skip-collection to "
            "use it as it is"
        )


def _read_settings(path: Path) -> dict[str, Any] | None:
    with naming_file(path):
        text = path.read_text() if path.exists() else None
    if text is None:
        return None
    try:
        return dict(json.loads(text))
    except (TypeError, ValueError):
        raise FileFaultError(
            f"{path}: got no settings of a collection; delete {path.parent} or choose another "
            "--output"
        ) from None


def _shown(value: Any) -> str:
    text = "not given" if value is None else json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."
