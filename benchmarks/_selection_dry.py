"""The live selection benchmark's processes where there is no GPU, to try the rest out."""

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
    """Decides and renders as the real one, and compiles but one kernel."""
    real = compiler(hardware, mark)
    compiled: list[str] = []

    def answer(order: Any) -> Any:
        if isinstance(order, Compile) and compiled:
            return ""
        found = real(order)
        if isinstance(order, Compile):
            compiled.append(str(order.kernel.candidate))
        return found

    return answer


def dry_bench(hardware: Hardware, _: int, __: ProgressMarker) -> Callable[[Any], Row]:
    """Answers with the times the model predicts."""
    heuristic = shipped(hardware)

    def answer(order: Any) -> Row:
        if isinstance(order, Cold):
            seconds = ((PLAIN, 0.1), (DIODE, 0.2), (TUNED, 1.0), (DEFAULT, 6.0))
            rows = {method: {"compile_s": taken, "configs": []} for method, taken in seconds}
            return {"cold": rows}
        if isinstance(order, Tune):
            names = sorted(order.known)
            return {
                "ratios": {"triton::unknown": (1.1, 0.01)},
                DEFAULT: {"pick": "triton::unknown", "benchmarked": len(names)},
                TUNED: {"pick": names[0], "benchmarked": 3},
            }
        space = Candidates.of([Candidate(ATEN), *(k.candidate for k in order.kernels)])
        ranking = heuristic.rank(order.problem, space, hardware)
        times = ranking.predicted_us if ranking is not None else np.arange(1.0, len(space) + 1)
        named = zip(map(str, space), times.tolist(), strict=True)
        return {"times": {name: (taken, 0.01) for name, taken in named}, "faults": {}}

    return answer
