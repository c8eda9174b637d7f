"""Max-autotune's picks for the matmuls of a model."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from _live import attempted


@contextlib.contextmanager
def picks() -> Iterator[dict[str, str]]:
    """Record max-autotune's pick per problem, from Inductor's feedback."""
    from torch._inductor.kernel_inputs import MMKernelInputs

    from torch_diode.integration.autotune.feedback import add_feedback, candidate_of
    from torch_diode.integration.deciding.problem import problem_of

    found: dict[str, str] = {}

    def keep(timings: Mapping[Any, float], name: str, input_nodes: Sequence[Any]) -> None:
        ran = {choice: time for choice, time in timings.items() if math.isfinite(time)}
        if ran:
            problem = problem_of(name, MMKernelInputs(list(input_nodes)))
            found[problem.key] = str(candidate_of(min(ran, key=ran.__getitem__)) or "other")

    def heard(timings: Mapping[Any, float], name: str, input_nodes: Sequence[Any], *_: Any) -> None:
        if "mm" in name:
            attempted(lambda: keep(timings, name, input_nodes))

    undo = add_feedback(heard)
    try:
        yield found
    finally:
        undo()
