"""A user's program, run in this process as `python script arguments` would run it."""

from __future__ import annotations

import contextlib
import ctypes
import os
import runpy
import sys
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path

from torch_diode.files.file_errors import existing, naming_file
from torch_diode.types.errors import FileFaultError


def check_program(script: Path) -> None:
    """Refuse a path that Python could not run: missing, not readable, or a directory without a
    `__main__.py`."""
    file = existing(script)
    if file.is_dir():
        file /= "__main__.py"
        if not file.is_file():
            raise FileFaultError(
                f"{script}: got a directory without a __main__.py; expected a Python program; "
                "name its file"
            )
    with naming_file(file):
        file.open("rb").close()


def run_program(script: Path, arguments: Sequence[str]) -> int:
    """Run a program and return its exit code.

    An exception is printed as Python would print it, without the frames of this module, and gives
    the exit code 1: results recorded until then are not lost.
    """
    with _as_main(script, arguments):
        try:
            runpy.run_path(str(script), run_name="__main__")
        except SystemExit as stop:
            if stop.code is None or isinstance(stop.code, int):
                return stop.code or 0
            sys.stderr.write(f"{stop.code}\n")
            return 1
        except Exception as fault:  # noqa: BLE001 - any exception is the program's
            frame = fault.__traceback__
            while frame is not None and frame.tb_frame.f_code.co_filename != str(script):
                frame = frame.tb_next
            traceback.print_exception(fault.with_traceback(frame or fault.__traceback__))
            return 1
    return 0


@contextlib.contextmanager
def stdout_to_stderr() -> Iterator[None]:
    """Send all that is printed inside to standard error, also by C libraries and by processes
    started inside."""
    sys.stdout.flush()
    before = os.dup(1)
    os.dup2(2, 1)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        # Text still in the buffers of Python or of the C library was printed inside.
        if sys.__stdout__ is not None:
            sys.__stdout__.flush()
        ctypes.CDLL(None).fflush(None)
        os.dup2(before, 1)
        os.close(before)


@contextlib.contextmanager
def _as_main(script: Path, arguments: Sequence[str]) -> Iterator[None]:
    """`sys.argv` and `sys.path` as the program expects them."""
    before, path = sys.argv, list(sys.path)
    sys.argv = [str(script), *arguments]
    sys.path.insert(0, str(script.resolve().parent))
    try:
        yield
    finally:
        sys.argv, sys.path[:] = before, path
