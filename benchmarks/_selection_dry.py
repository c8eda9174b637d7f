"""Processes of the live selection benchmark without a GPU, for dry runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from _live import shipped
from _selection import DEFAULT, DIODE, PLAIN, TUNED, Row
from _selection_bench import Cold, Tune
from _selection_compiling import Compile, compiler

from torch_diode.collection.workers.pool import ProgressMarker
from torch_diode.types.candidate import ATEN, Candidate
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.hardware import Hardware


def dry_compiler(hardware: Hardware, mark: ProgressMarker) -> Callable[[Any], Any]:
    """Worker that decides and renders like the real one, and compiles a single kernel."""
    real = compiler(hardware, mark)
    compiled: list[str] = []

    def answer(request: Any) -> Any:
        if isinstance(request, Compile) and compiled:
            return ""
        found = real(request)
        if isinstance(request, Compile):
            compiled.append(str(request.kernel.candidate))
        return found

    return answer


def dry_bench(hardware: Hardware, _: int, __: ProgressMarker) -> Callable[[Any], Row]:
    """Worker that answers with the model's predicted times."""
    heuristic = shipped(hardware)

    def answer(request: Any) -> Row:
        if isinstance(request, Cold):
            seconds = ((PLAIN, 0.1), (DIODE, 0.2), (TUNED, 1.0), (DEFAULT, 6.0))
            rows = {method: {"compile_s": taken, "configs": []} for method, taken in seconds}
            return {"cold": rows}
        if isinstance(request, Tune):
            names = sorted(request.known)
            return {
                "ratios": {"triton::unknown": (1.1, 0.01)},
                DEFAULT: {"pick": "triton::unknown", "benchmarked": len(names)},
                TUNED: {"pick": names[0], "benchmarked": 3},
            }
        space = Candidates.of([Candidate(ATEN), *(k.candidate for k in request.kernels)])
        ranking = heuristic.rank(request.problem, space, hardware)
        times = ranking.predicted_us if ranking is not None else np.arange(1.0, len(space) + 1)
        named = zip(map(str, space), times.tolist(), strict=True)
        return {"times": {name: (taken, 0.01) for name, taken in named}, "faults": {}}

    return answer
