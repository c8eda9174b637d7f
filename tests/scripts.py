"""Scripts of `benchmarks` and `workflows`: run as a user would, or imported."""

import importlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]


def run_script(path: str, *arguments: object, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, ROOT / path, *map(str, arguments)],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


def load_script(folder: str, name: str) -> Any:
    """A module of a folder of scripts, which import one another by their names."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / folder)
        return importlib.import_module(name)


def programs_in(folder: Path) -> Path:
    """A folder with `torch-diode` and `python` of this environment."""
    folder.mkdir()
    for name, module in (("torch-diode", "-m torch_diode"), ("python", ""), ("python3", "")):
        (folder / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {module} "$@"\n')
        (folder / name).chmod(0o755)
    return folder
