"""The program, run as a person runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


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


def refusal(*arguments: str | Path, cwd: Path | None = None) -> str:
    """The one sentence on standard error of a run that must fail with exit code 2."""
    ended = torch_diode(*arguments, cwd=cwd)
    assert ended.returncode == 2, ended
    assert ended.stdout == ""
    lines = ended.stderr.splitlines()
    assert len(lines) == 1, ended.stderr
    assert lines[0].startswith("torch-diode: ")
    return lines[0].removeprefix("torch-diode: ")
