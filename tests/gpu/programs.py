"""Programs that tests on a GPU start as processes of their own."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Absolute: programs run in other folders, and torch-diode need not be installed.
_PATHS = [str(ROOT), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
ENVIRONMENT = {
    **os.environ,
    "TORCH_DIODE": "0",
    "PYTHONPATH": os.pathsep.join(map(os.path.abspath, _PATHS)),
}


def run(
    *arguments: str | Path, cwd: Path = ROOT, code: int = 0, **environ: str
) -> subprocess.CompletedProcess[str]:
    """Run Python with these arguments and check its exit code."""
    ended = subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env={**ENVIRONMENT, **environ},
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert ended.returncode == code, ended.stdout + ended.stderr
    return ended


def torch_diode(
    *arguments: str | Path, cwd: Path, code: int = 0
) -> subprocess.CompletedProcess[str]:
    """Run the `torch-diode` command."""
    return run("-m", "torch_diode", *arguments, cwd=cwd, code=code)
