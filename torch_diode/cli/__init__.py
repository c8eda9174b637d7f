"""The command line: one file a command, each thin: parse, call, print."""

from __future__ import annotations

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the program `torch-diode`; its modules are imported when it starts."""
    from torch_diode.cli import app

    app.main(arguments)
