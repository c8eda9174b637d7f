"""The matmuls of a user's program, which runs once in a process of its own.

There it may crash, take the GPU or never end. The process writes what was traced until then.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch_diode.files.json import read_json, write_json
from torch_diode.files.shape_sets import read_shapes
from torch_diode.hardware import detect
from torch_diode.integration import registration
from torch_diode.integration.capture.trace import Trace, TracedProblem, tracing
from torch_diode.toolkit.program import check_program, program_name, run_program
from torch_diode.types.errors import DiodeError, EmptySelectionError, FileFaultError

_STOPPED = 124
_COLLECTED = 50_000
"""Objects between collections of the youngest garbage: compiling allocates many that stay, and
takes 7% longer with Python's own number."""
_GRACE_S = 15.0
"""Time beyond the timeout for the process to write what it traced."""

Traced = Counter[TracedProblem]


def trace_program(
    program: Path,
    arguments: Sequence[str],
    timeout: float | None = None,
    meanwhile: Callable[[], None] = lambda: None,
) -> tuple[Traced, Counter[str]]:
    """What a program compiles, and the reasons for which matmuls were left out; `meanwhile` is
    called while it runs."""
    check_program(program, arguments)
    name = program_name(program, arguments)
    with tempfile.TemporaryDirectory(prefix="torch-diode-") as folder:
        file = Path(folder) / "traced.json"
        command = [sys.executable, "-m", __name__, str(file), str(timeout or 0)]
        running = subprocess.Popen([*command, str(program), *arguments])  # noqa: S603
        try:
            meanwhile()
            code = running.wait(None if timeout is None else timeout + _GRACE_S)
        except subprocess.TimeoutExpired:
            code = _STOPPED
        finally:
            running.kill()
            running.wait()
        data = read_json(file) if file.exists() else {"traced": [], "left out": {}}
    traced = Counter({TracedProblem.from_dict(item): count for item, count in data["traced"]})
    if code not in (0, _STOPPED):
        ended = f"exit code {code}" if code > 0 else f"signal {-code}"
        raise DiodeError(
            f"{name}: got {ended}; expected a program that ends with 0; run it alone first, "
            "nothing was measured"
        )
    if not traced:
        when = f"within {timeout:g} s (--timeout)" if code else "in what it compiled"
        raise EmptySelectionError(
            f"{name}: got no matmul {when}; expected at least one; does it call torch.compile?"
        )
    return traced, Counter(data["left out"])


def trace_call(function: Callable[[], Any]) -> tuple[Traced, Counter[str]]:
    """What a function compiles, called here."""
    with tracing() as trace:
        function()
    if not trace.traced:
        name = getattr(function, "__qualname__", type(function).__name__)
        raise EmptySelectionError(
            f"{name}: got no matmul in what it compiled; expected at least one; does it call a "
            "function made by torch.compile, which was not compiled before?"
        )
    return trace.traced, trace.left_out


def read_traced(shapeset: Path, device: str | None) -> Traced:
    """The problems of a shape set, on a device; their weights may be constant."""
    chip = detect(device)
    kind = "cpu" if chip.kind == "cpu" else "cuda"
    traced: Traced = Counter()
    for shape in read_shapes(shapeset):
        traced[TracedProblem(shape.problem, kind, chip.threads, constant=False)] += shape.count
    if not traced:
        raise EmptySelectionError(f"{shapeset}: got no problem; expected at least one")
    return traced


def _run_traced(file: Path, timeout: float, program: Path, arguments: Sequence[str]) -> int:
    from torch_diode.integration.default_heuristic import NONE

    # Torch decides here: no model or table is loaded to say what would have been chosen.
    matmul = registration._registration.matmul
    undecided = replace(matmul.settings, heuristic=None, model=NONE, table="", tuned=False)
    with matmul.changed(undecided), tracing() as trace:
        if timeout:
            watch = threading.Timer(timeout, _stop, (trace, file))
            watch.daemon = True
            watch.start()
        code = run_program(program, arguments)
        _write(trace, file)
    return code


def _stop(trace: Trace, file: Path) -> None:
    _write(trace, file)
    os._exit(_STOPPED)


def _write(trace: Trace, file: Path) -> None:
    traced = [[item.to_dict(), count] for item, count in trace.traced.items()]
    write_json(file, {"traced": traced, "left out": dict(trace.left_out)}, 1)


if __name__ == "__main__":
    gc.set_threshold(_COLLECTED)
    _file, _timeout, _program, *_arguments = sys.argv[1:]
    try:
        sys.exit(_run_traced(Path(_file), float(_timeout), Path(_program), _arguments))
    except (KeyboardInterrupt, FileFaultError):
        sys.exit(130)
