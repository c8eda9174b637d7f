"""Output of commands: tables for people, JSON for programs, colour only on a terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as RichTable

from torch_diode.toolkit.progress import Progress

# A column that does not fit would be dropped; a line that does not fit is wrapped by the terminal.
_WIDE = 240


def console() -> Console:
    """The console of standard output."""
    return Console(highlight=False)


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[Any]], *, title: str = "", right: str = ""
) -> None:
    """Print aligned columns; `right` has a letter for each, `r` for those aligned right."""
    table = RichTable(
        title=title or None, title_justify="left", box=SIMPLE_HEAD, show_edge=False, pad_edge=False
    )
    for position, name in enumerate(columns):
        side = "right" if right[position : position + 1] == "r" else "left"
        table.add_column(name, justify=side, no_wrap=True)  # type: ignore[arg-type]
    for row in rows:
        table.add_row(*(_shown(value) for value in row))
    Console(width=_WIDE, highlight=False).print(table)


def print_json(data: Any) -> None:
    """Print data for a program."""
    sys.stdout.write(json.dumps(data, indent=2, ensure_ascii=False) + "\n")


def print_line(text: str) -> None:
    """Print a line of plain text."""
    console().print(text, markup=False, soft_wrap=True)


def print_notes(notes: Iterable[str]) -> None:
    """Print remarks that are needed to read a result."""
    for text in notes:
        print_line(f"Note: {text}.")


def note_progress(report: Progress) -> None:
    """Progress callback that prints messages to standard error, and nothing else."""
    if report.message:
        note(report.message)


def note(text: str) -> None:
    """Print a line to standard error, since standard output may be JSON for a program."""
    Console(stderr=True, highlight=False).print(text, markup=False, soft_wrap=True)


def megabytes(path: Path) -> str:
    """The size of a file, as text."""
    return f"{path.stat().st_size / 1e6:.1f} MB"


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.2f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
