"""A user's program, run in this process as `python script arguments` would run it, or `python -m
module arguments`."""

from __future__ import annotations

import builtins
import contextlib
import ctypes
import importlib.util
import os
import runpy
import sys
import zipfile
from collections.abc import Iterator, Sequence
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType, TracebackType

from torch_diode.files.file_errors import existing, naming_file
from torch_diode.types.errors import FileFaultError, InvalidValueError

MODULE = Path("-m")
"""Stands for the program where the first argument names a module, as on Python's command line."""
_LAUNCHER = (__file__, runpy.__file__, "<frozen runpy>", "<frozen importlib")
"""Files whose frames precede the program's own in a traceback."""


def check_program(script: Path, arguments: Sequence[str] = ()) -> None:
    """Refuse a path that Python could not run: missing, not readable, or a directory without a
    `__main__.py`; after `-m`, a name that no module has."""
    if script == MODULE:
        _check_module(arguments)
        return
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


def program_name(script: Path, arguments: Sequence[str]) -> str:
    """The name of a program: of its file, or of the module."""
    return arguments[0] if script == MODULE else script.name


def _check_module(arguments: Sequence[str]) -> None:
    if not arguments:
        raise InvalidValueError("-m: got no name; expected the name of a Python module after it")
    name = arguments[0].partition(".")[0]
    with _as_main(MODULE, arguments):
        if not name or importlib.util.find_spec(name) is None:
            raise InvalidValueError(
                f"-m: got {arguments[0]!r}; expected a module that Python finds from here; for a "
                "file leave out -m"
            )


def run_program(script: Path, arguments: Sequence[str]) -> int:
    """Run a program and return its exit code.

    An exception is shown as Python would show it, without the frames of this module, and gives
    the exit code 1: results recorded until then are not lost.
    """
    with _as_main(script, arguments):
        try:
            if script == MODULE:
                runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
            elif _is_source(script):
                _execute(script.absolute())
            else:
                runpy.run_path(str(script.absolute()), run_name="__main__")
        except SystemExit as stop:
            if stop.code is None or isinstance(stop.code, int):
                return stop.code or 0
            sys.stderr.write(f"{stop.code}\n")
            return 1
        except Exception as fault:  # noqa: BLE001 - any exception is the program's
            frames = _own_frames(fault.__traceback__)
            if script == MODULE and frames is None and isinstance(fault, ImportError):
                raise InvalidValueError(
                    f"-m: got {arguments[0]!r}; expected a module that Python can run: {fault}"
                ) from None
            sys.excepthook(type(fault), fault.with_traceback(frames), frames)
            return 1
    return 0


def _is_source(script: Path) -> bool:
    return script.is_file() and script.suffix != ".pyc" and not zipfile.is_zipfile(script)


def _execute(script: Path) -> None:
    """Run a file as `__main__`; runpy would give it another `sys.argv[0]` and `__package__`."""
    main, before = ModuleType("__main__"), sys.modules["__main__"]
    loader = SourceFileLoader("__main__", str(script))
    names = {"__file__": str(script), "__loader__": loader, "__cached__": None}
    vars(main).update(names, __builtins__=builtins)
    code = loader.source_to_code(loader.get_data(str(script)), str(script))
    sys.modules["__main__"] = main
    try:
        exec(code, vars(main))  # noqa: S102 - the user's own program
    finally:
        sys.modules["__main__"] = before


def _own_frames(frames: TracebackType | None) -> TracebackType | None:
    """A program's frames; None where it did not begin to run, such as after a syntax error."""
    while frames is not None and frames.tb_frame.f_code.co_filename.startswith(_LAUNCHER):
        frames = frames.tb_next
    return frames


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
    """`sys.argv` and `sys.path` as the program expects them: the first entry of the path is its
    own, not that of the program that runs it."""
    before, path = sys.argv, list(sys.path)
    sys.argv = [str(script), *arguments[script == MODULE :]]
    if not getattr(sys.flags, "safe_path", sys.flags.isolated):
        sys.path[:1] = _first_on_path(script)
    try:
        yield
    finally:
        sys.argv, sys.path[:] = before, path


def _first_on_path(script: Path) -> list[str]:
    if script == MODULE:
        return [str(Path.cwd())]
    # A directory or an archive is put there when it is run.
    is_package = script.is_dir() or zipfile.is_zipfile(script)
    return [] if is_package else [str(script.resolve().parent)]
