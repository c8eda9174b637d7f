"""Scripts of `benchmarks` and `workflows`: run as a user would, or imported."""

import contextlib
import importlib
import io
import os
import runpy
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


def run_inside(path: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a script in this process: seconds less where torch would be loaded again."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [path, *map(str, arguments)])
        patch.syspath_prepend((ROOT / path).parent)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                runpy.run_path(str(ROOT / path), run_name="__main__")
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else int(end.code is not None)
                print(end.code if isinstance(end.code, str) else "", end="\n", file=err)
    return subprocess.CompletedProcess(sys.argv, code, out.getvalue(), err.getvalue())


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
