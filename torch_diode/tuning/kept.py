"""Management of what tuning keeps on this machine."""

from __future__ import annotations

import shutil
from dataclasses import dataclass

from torch_diode.files.file_errors import naming_file
from torch_diode.files.tables import read_table
from torch_diode.integration.tuned_tables import TunedFolder, tuned_folders
from torch_diode.types.errors import EmptySelectionError

ALL = "all"


@dataclass(frozen=True)
class KeptTable:
    """A folder of what was tuned: its table's size, and its own size on disk."""

    folder: TunedFolder
    problems: int
    bytes: int


def list_kept() -> list[KeptTable]:
    """All that is kept, by hardware, threads and release."""
    return [
        KeptTable(
            folder,
            len(read_table(folder.table)) if folder.table.exists() else 0,
            sum(file.stat().st_size for file in folder.path.rglob("*") if file.is_file()),
        )
        for folder in tuned_folders()
    ]


def forget(name: str) -> list[TunedFolder]:
    """Delete what is kept under a name that `list_kept` gives, or `all`."""
    kept = list(tuned_folders())
    chosen = [folder for folder in kept if name in (ALL, folder.name)]
    if not chosen:
        names = ", ".join(folder.name for folder in kept) or "nothing is kept"
        raise EmptySelectionError(f"--forget: got {name!r}; expected {ALL} or one of: {names}")
    for folder in chosen:
        with naming_file(folder.path):
            shutil.rmtree(folder.path)
    return chosen
