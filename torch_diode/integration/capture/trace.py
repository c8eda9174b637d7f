"""Tracing: the matmul problems of the graphs that a program compiles, with their counts."""

from __future__ import annotations

import contextlib
import weakref
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from torch_diode.integration import registration
from torch_diode.integration.hooks import torch_compat
from torch_diode.integration.hooks.fallback import Fallback
from torch_diode.integration.hooks.observer import Observer
from torch_diode.integration.hooks.weight_packing import WeightPacking
from torch_diode.types.problem import BATCHED, MMShape
from torch_diode.types.shapes import CountedShape, OperationShapeSet

if TYPE_CHECKING:
    from torch_diode.integration.installation import Registration


@dataclass(frozen=True)
class TracedProblem:
    """A problem as it was met in a graph, and what decides which candidates it has there."""

    problem: MMShape
    device: str
    """Type of its torch device: `cpu`, `cuda`."""
    threads: int = 0
    """Those of a CPU."""
    constant: bool = False
    """The weight is a constant of a frozen graph, which a library may pack."""
    dynamic: str = ""
    """The dynamic sizes with their ranges, such as `M 2-512`."""

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {**asdict(self), "problem": self.problem.key}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> TracedProblem:
        """Parse the JSON form."""
        return cls(**{**data, "problem": MMShape.from_key(data["problem"])})


class Trace(Observer):
    """The problems seen so far; `fallback` counts the unsupported ones by reason."""

    name = "trace"

    def __init__(self) -> None:
        super().__init__()
        self.fallback = Fallback()
        self.traced: Counter[TracedProblem] = Counter()
        self._packing = WeightPacking(self.fallback, self._count_frozen)
        self._seen: weakref.WeakKeyDictionary[Any, set[str]] = weakref.WeakKeyDictionary()

    @property
    def hooks(self) -> tuple[str, ...]:  # type: ignore[override]
        """This release's method for matmul choices."""
        return (torch_compat.matmul_hook(),)

    def install(self, registration: Registration) -> None:
        """Also count the linears whose constant weight torch packs: they reach no handler."""
        super().install(registration)
        self._packing.install()

    def uninstall(self, registration: Registration) -> None:
        """Stop counting."""
        super().uninstall(registration)
        self._packing.uninstall()

    def mixin(self, handler: Any) -> type | None:
        """A class that counts the request and passes it on."""
        return _counting_mixin(self)

    def count(self, op: str, inputs: Any) -> None:
        """Count a matmul once per graph node: some releases call the hook several times."""
        self.fallback.run(lambda: self._count(op, inputs))

    def _count(self, op: str, inputs: Any) -> None:
        from torch._inductor.virtualized import V

        node: Any = V.graph.current_node
        seen = self._seen.setdefault(V.graph, set())
        if node.name not in seen:
            seen.add(node.name)
            self._add(op, inputs, constant=False)

    def _count_frozen(self, node: Any) -> bool:
        """Count a linear that is about to be packed, and leave it to torch."""
        from torch_diode.integration.cpu.frozen import FrozenLinear

        linear = FrozenLinear(node)
        self.fallback.run(lambda: self._add(linear.op, linear.inputs, constant=True))
        return False

    def _add(self, op: str, inputs: Any, constant: bool) -> None:
        import torch

        from torch_diode.integration.deciding.problem import problem_of

        problem = problem_of(op, inputs)
        a, b = inputs.mat1mat2()
        device = a.get_device().type
        sizes = {"M": a.get_size()[-2], "N": b.get_size()[-1], "K": a.get_size()[-1]}
        if op in BATCHED:
            sizes["B"] = a.get_size()[0]
        ranges = {name: torch_compat.range_of(size) for name, size in sizes.items()}
        dynamic = ", ".join(f"{name} {text}" for name, text in ranges.items() if text)
        threads = torch.get_num_threads() if device == "cpu" else 0
        self.traced[TracedProblem(problem, device, threads, constant, dynamic)] += 1

    @property
    def counts(self) -> Counter[MMShape]:
        """The problems alone, most frequent first."""
        counts: Counter[MMShape] = Counter()
        for traced, count in self.traced.items():
            counts[traced.problem] += count
        return counts

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
    """Count every matmul compiled inside the `with`; torch decides them, and attention on a CPU."""
    trace, owner = Trace(), registration._registration
    observing = owner.matmul.settings.changed(mode="observe")
    attention = owner.cpu_attention.settings
    owner.cpu_attention.settings = observing
    try:
        with owner.matmul.changed(observing), trace.installed(owner):
            yield trace
    finally:
        owner.cpu_attention.settings = attention
