"""The program, run as a person runs it."""

import contextlib
import io
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from torch_diode.cli import main


def torch_diode(
    *arguments: str | Path, cwd: Path | None = None, **environ: str
) -> subprocess.CompletedProcess[str]:
    """Run `torch-diode` with these arguments; nothing registers itself meanwhile."""
    return subprocess.run(
        [sys.executable, "-m", "torch_diode", *arguments],
        cwd=cwd,
        env={**os.environ, "TORCH_DIODE": "0", **environ},
        capture_output=True,
        text=True,
        errors="surrogateescape",
        check=False,
        timeout=120,
    )


@dataclass(frozen=True)
class Ended:
    """Exit code and output of a run within this process."""

    code: int
    out: str
    err: str


def inside(*arguments: str | Path) -> Ended:
    """The program run in this process: seconds less where torch would be loaded again."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 0
        else:
            code = 0
    return Ended(code, out.getvalue(), err.getvalue())


def told_off(*arguments: str | Path) -> str:
    """The one sentence of a run within this process that must fail with exit code 2."""
    ended = inside(*arguments)
    assert ended.code == 2, ended
    lines = ended.err.splitlines()
    assert len(lines) == 1, ended.err
    return lines[0].removeprefix("torch-diode: ")
