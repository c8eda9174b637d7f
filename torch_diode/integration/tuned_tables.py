"""Tables that `torch-diode tune` keeps in the user's data directory: one per hardware, number of
threads and torch release."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from torch_diode.files.file_errors import naming_file
from torch_diode.files.user_data import user_data
from torch_diode.integration.hooks import torch_compat
from torch_diode.types.hardware import Hardware

if TYPE_CHECKING:
    from torch_diode.heuristics.tuned import TunedTable

FOLDER = "tuned"
_NAME = re.compile(r"(?P<hardware>.+?)(?:-(?P<threads>\d+)-threads)?-torch-(?P<torch>\d+\.\d+)")


@dataclass(frozen=True, order=True)
class TunedFolder:
    """The folder of what was measured on a hardware: its timings, and the table made of them."""

    hardware: str
    threads: int
    torch: str
    """Major and minor number of the release."""

    @property
    def name(self) -> str:
        """Such as `amd-zen5-2-threads-torch-2.13`."""
        threads = f"-{self.threads}-threads" if self.threads else ""
        return f"{self.hardware}{threads}-torch-{self.torch}"

    @property
    def path(self) -> Path:
        """The folder itself."""
        return user_data() / FOLDER / self.name

    @property
    def table(self) -> Path:
        """The table that decides."""
        return self.path / "table.json"

    @property
    def timings(self) -> Path:
        """All timings, from which the table is built."""
        return self.path / "timings.parquet"

    @property
    def drawn(self) -> Path:
        """Timings of problems drawn at random, for a model."""
        return self.path / "drawn.parquet"

    def __str__(self) -> str:
        threads = f" with {self.threads} threads" if self.threads else ""
        return f"{self.hardware}{threads} and torch {self.torch}"


def tuned_folder(hardware: Hardware) -> TunedFolder:
    """The folder for a hardware and the installed torch."""
    release = ".".join(torch_compat.torch_release().split(".")[:2])
    return TunedFolder(hardware.name, hardware.threads, release)


def tuned_folders() -> Iterator[TunedFolder]:
    """All that are kept, in order."""
    root = user_data() / FOLDER
    with naming_file(root):
        names = sorted(path.name for path in root.iterdir()) if root.is_dir() else []
    for match in filter(None, map(_NAME.fullmatch, names)):
        yield TunedFolder(match["hardware"], int(match["threads"] or 0), match["torch"])


def tuned_table(hardware: Hardware) -> TunedTable | None:
    """The table kept for a hardware, its threads and the installed torch; None where there is
    none."""
    path = tuned_folder(hardware).table
    with naming_file(path):
        if not path.is_file():
            return None
    # Imports msgpack, which a decision without a table does without.
    from torch_diode.files.tables import read_table
    from torch_diode.heuristics.tuned import TunedTable

    return TunedTable(read_table(path))


def why_unused(hardware: Hardware) -> str:
    """The reason why what is kept is not used: another CPU or GPU, number of threads or release;
    empty where nothing is kept or it is used."""
    wanted = tuned_folder(hardware)
    alike = [kept for kept in tuned_folders() if bool(kept.threads) == bool(wanted.threads)]
    if not alike or wanted in alike:
        return ""
    nearest = max(alike, key=lambda kept: (kept.hardware == wanted.hardware, kept.torch))
    return (
        f"the table tuned for {nearest} is not used, this is {wanted}: run `torch-diode tune` again"
    )
