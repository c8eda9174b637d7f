"""Tracing: the matmul problems of the graphs that a program compiles, with their counts."""

from __future__ import annotations

import contextlib
import weakref
from collections import Counter
from collections.abc import Iterator
from typing import Any

from torch_diode.integration import registration
from torch_diode.integration.hooks import torch_compat
from torch_diode.integration.hooks.fallback import Fallback
from torch_diode.integration.hooks.observer import Observer
from torch_diode.types.problem import MMShape
from torch_diode.types.shapes import CountedShape, OperationShapeSet


class Trace(Observer):
    """The problems seen so far; `fallback` counts the unsupported ones by reason."""

    name = "trace"

    def __init__(self) -> None:
        super().__init__()
        self.fallback = Fallback()
        self.counts: Counter[MMShape] = Counter()
        self._seen: weakref.WeakKeyDictionary[Any, set[str]] = weakref.WeakKeyDictionary()

    @property
    def hooks(self) -> tuple[str, ...]:  # type: ignore[override]
        """This release's method for matmul choices."""
        return (torch_compat.matmul_hook(),)

    def mixin(self, handler: Any) -> type | None:
        """A class that counts the request and passes it on."""
        return _counting_mixin(self)

    def count(self, op: str, inputs: Any) -> None:
        """Count a matmul once per graph node: some releases call the hook several times."""
        self.fallback.run(lambda: self._count(op, inputs))

    def _count(self, op: str, inputs: Any) -> None:
        from torch._inductor.virtualized import V

        from torch_diode.integration.deciding.problem import problem_of

        node: Any = V.graph.current_node
        seen = self._seen.setdefault(V.graph, set())
        if node.name not in seen:
            seen.add(node.name)
            self.counts[problem_of(op, inputs)] += 1

    def shapes(self, origin: str = "") -> OperationShapeSet:
        """The problems as a shape set, most frequent first."""
        return OperationShapeSet.of(
            CountedShape(problem, count, origin) for problem, count in self.counts.most_common()
        )

    @property
    def left_out(self) -> Counter[str]:
        """Numbers of unsupported matmuls by reason, such as mixed dtypes."""
        return self.fallback.counters.abstentions + self.fallback.counters.fallbacks


def _counting_mixin(trace: Trace) -> type:
    """Built per trace, with methods of its own: inherited ones would come after torch's class in a
    composed handler's method resolution order."""

    class Counting:
        def _finalize_template_configs(
            self,
            template_choices: Any,
            kernel_inputs: Any,
            templates: Any,
            op_name: str,
            *a: Any,
            **k: Any,
        ) -> Any:
            trace.count(op_name, kernel_inputs)
            parent: Any = super()
            hook = parent._finalize_template_configs
            return hook(template_choices, kernel_inputs, templates, op_name, *a, **k)

        def get_mm_configs(
            self, kernel_inputs: Any, layout: Any, templates: Any, op_name: str, *a: Any, **k: Any
        ) -> Any:
            trace.count(op_name, kernel_inputs)
            parent: Any = super()
            return parent.get_mm_configs(kernel_inputs, layout, templates, op_name, *a, **k)

    return Counting


@contextlib.contextmanager
def tracing() -> Iterator[Trace]:
    """Count every matmul compiled inside the `with`; torch decides all of them."""
    trace = Trace()
    matmul = registration._registration.matmul
    with matmul.changed(matmul.settings.changed(mode="observe")), trace.installed():
        yield trace
