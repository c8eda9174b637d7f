"""Tracing: every matmul problem in the graphs that a program compiles, with how often."""

from __future__ import annotations

import contextlib
import weakref
from collections import Counter
from collections.abc import Generator, Iterator
from typing import Any

from torch_diode.integration import registration
from torch_diode.integration.hooks import torch_compat
from torch_diode.integration.hooks.fallback import Fallback
from torch_diode.integration.hooks.observer import Observer
from torch_diode.types.problem import MMShape
from torch_diode.types.shapes import CountedShape, OperationShapeSet


class Trace(Observer):
    """The problems met so far.

    `guard` counts those that could not be said, by reason.
    """

    name = "trace"

    def __init__(self) -> None:
        super().__init__()
        self.fallback = Fallback()
        self.counts: Counter[MMShape] = Counter()
        self._seen: weakref.WeakKeyDictionary[Any, set[str]] = weakref.WeakKeyDictionary()

    @property
    def hooks(self) -> tuple[str, ...]:  # type: ignore[override]
        """This release's one method for matmul choices."""
        return (torch_compat.matmul_hook(),)

    def mixin(self, handler: Any) -> type | None:
        """Inductor's question is noted and passed on."""
        return _noting(self)

    def note(self, op: str, inputs: Any) -> None:
        """Count a matmul, once for each node of a graph: some releases ask several times."""
        self.fallback.run(lambda: self._note(op, inputs))

    def _note(self, op: str, inputs: Any) -> None:
        from torch._inductor.virtualized import V

        from torch_diode.integration.deciding.problem import problem_of

        node: Any = V.graph.current_node
        seen = self._seen.setdefault(V.graph, set())
        if node.name not in seen:
            seen.add(node.name)
            self.counts[problem_of(op, inputs)] += 1

    def shapes(self, origin: str = "") -> OperationShapeSet:
        """The problems as a shape set, the most frequent first."""
        return OperationShapeSet.of(
            CountedShape(problem, count, origin) for problem, count in self.counts.most_common()
        )

    @property
    def left_out(self) -> Counter[str]:
        """Why problems could not be said (mixed dtypes, strides of no matrix), and how often."""
        return self.fallback.counters.abstentions + self.fallback.counters.fallbacks


def _noting(trace: Trace) -> type:
    """A class to put before torch's handler: looks at the question, leaves the answer to others.

    Made for each trace, with the methods its own: were they inherited, torch's class would come
    before them in the order of a composed handler.
    """

    class Noting:
        def _finalize_template_configs(
            self,
            template_choices: Any,
            kernel_inputs: Any,
            templates: list[Any],
            op_name: str,
            kwarg_overrides: dict[str, dict[str, Any]] | None = None,
        ) -> list[Any]:
            trace.note(op_name, kernel_inputs)
            before: Any = super()
            answer: list[Any] = before._finalize_template_configs(
                template_choices, kernel_inputs, templates, op_name, kwarg_overrides
            )
            return answer

        def get_mm_configs(
            self,
            kernel_inputs: Any,
            layout: Any,
            templates: list[Any],
            op_name: str,
            kwarg_overrides: dict[str, dict[str, Any]] | None = None,
        ) -> Generator[Any, None, None]:
            trace.note(op_name, kernel_inputs)
            before: Any = super()
            yield from before.get_mm_configs(
                kernel_inputs, layout, templates, op_name, kwarg_overrides
            )

    return Noting


@contextlib.contextmanager
def tracing() -> Iterator[Trace]:
    """Note every matmul that is compiled inside; torch decides about all of them meanwhile."""
    trace = Trace()
    matmul = registration._registration.matmul
    with matmul.changed(matmul.settings.changed(mode="observe")), trace.installed():
        yield trace
