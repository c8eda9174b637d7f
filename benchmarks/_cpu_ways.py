"""One problem compiled in every way and timed, all in one process."""

from __future__ import annotations

import contextlib
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from _cpu_problems import Posed
from _live import Row
from torch import Tensor

from torch_diode.collection.kernels.cpu import RandomPool, warm_up
from torch_diode.collection.kernels.operands import Operands, operands_from
from torch_diode.collection.kernels.reference import TOLERANCE
from torch_diode.collection.timers.cpu import CpuTimer, lower_mean
from torch_diode.collection.timers.cpu_load import CpuWatch
from torch_diode.heuristics.base import Heuristic
from torch_diode.heuristics.custom import CustomHeuristic
from torch_diode.integration import registration
from torch_diode.types.candidate import ATEN, ONEDNN, Candidate

PLAIN, DIODE, TUNED = "plain", "torch-diode", "max-autotune"
NAMED = (PLAIN, DIODE, TUNED)
"""The others are named by the candidate they run."""
REPEATS, SLOW_REPEATS, SLOW_US = 40, 12, 5e3
_SOURCES = {
    False: """
        def run(a, b, *bias):
            return torch.addmm(*bias, a, b) if bias else torch.mm(a, b)
        """,
    True: """
        class Frozen(torch.nn.Module):
            def __init__(self, b, *bias):
                super().__init__()
                self.transposed = b.stride(0) == 1
                self.weight = torch.nn.Parameter(b.t() if self.transposed else b)
                self.bias = torch.nn.Parameter(bias[0]) if bias else None
            def forward(self, a):
                b = self.weight.t() if self.transposed else self.weight
                return torch.mm(a, b) if self.bias is None else torch.addmm(self.bias, a, b)
        """,
}
"""Executed anew for each way: Dynamo would use one's compiled code for the next."""


@dataclass(frozen=True)
class Way:
    """A compiled call, and the seconds of the first one."""

    call: Callable[[], Tensor]
    compile_s: float


class Bench:
    """Compiles and times problems with the threads torch has."""

    def __init__(
        self, heuristic: Heuristic | None, seed: int, cache_bytes: int, watch: CpuWatch
    ) -> None:
        self.heuristic = heuristic
        self.pool = RandomPool(seed)
        self.timer = CpuTimer(seed, cache_bytes, watch)

    def row(self, posed: Posed) -> Row:
        """Times of all ways, compile seconds, and torch-diode's decision."""
        tensors = operands_from(posed.problem, self.pool)
        offered: list[Candidate] = []
        row: Row = {"problem": posed.key, "set": posed.origin, "frozen": posed.frozen}
        with torch.no_grad():
            ways = {PLAIN: self._compile(posed, tensors)}
            with registration.using(_listing(offered)):
                self._compile(posed, tensors)
            ways |= {str(c): self._forced(posed, tensors, c) for c in offered}
            ways[DIODE], row["diode"], row["decision_us"] = self._decided(posed, tensors)
            if posed.frozen:
                ways[TUNED] = self._compile(posed, tensors, "max-autotune-no-cudagraphs")
            row["compile_s"] = {name: round(way.compile_s, 4) for name, way in ways.items()}
            row["wrong"] = self._drop_wrong(posed, tensors, ways)
            row["times"] = self._times(tensors, ways)
        return row

    def _decided(self, posed: Posed, tensors: Operands) -> tuple[Way, str, float | None]:
        """Torch-diode's way, its decision and the time that took; ATen where it abstains."""
        registration.enable(self.heuristic)
        before = len(registration.explain())
        try:
            way = self._compile(posed, tensors)
            decisions = registration.explain()[before:]
        finally:
            registration.disable()
        if not decisions:
            return way, PLAIN, None
        return way, str(decisions[-1].winner.candidate), round(decisions[-1].microseconds, 1)

    def _forced(self, posed: Posed, tensors: Operands, candidate: Candidate) -> Way:
        def only(problem: Any, candidates: Any) -> list[Candidate]:
            return [c for c in candidates if c == candidate]

        with registration.using(CustomHeuristic(only, str(candidate))):
            return self._compile(posed, tensors)

    def _compile(self, posed: Posed, tensors: Operands, mode: str | None = None) -> Way:
        """Compile with empty caches, with a weight of its own: it must be as cold as the others."""
        import torch._inductor.config as inductor_config
        from torch._inductor.utils import fresh_cache

        scope: dict[str, Any] = {"torch": torch}
        exec(textwrap.dedent(_SOURCES[posed.frozen]), scope)
        a, b = tensors.a, tensors.b.clone(memory_format=torch.preserve_format)
        bias = [] if tensors.bias is None else [tensors.bias]
        with fresh_cache(), inductor_config.patch(freezing=posed.frozen):
            if posed.frozen:
                module = torch.compile(scope["Frozen"](b, *bias).eval(), mode=mode, dynamic=False)
                given: list[Tensor] = [a]
            else:
                module = torch.compile(scope["run"], mode=mode, dynamic=False)
                given = [a, b, *bias]
            start = time.perf_counter()
            module(*given)
            seconds = time.perf_counter() - start
        return Way(lambda: module(*given), seconds)

    def _drop_wrong(self, posed: Posed, tensors: Operands, ways: dict[str, Way]) -> list[str]:
        """Remove and name the ways whose result is not ATen's."""
        expected = tensors.aten()().float()
        limit = TOLERANCE[posed.problem.precision]
        wrong = [
            name
            for name, way in ways.items()
            if not float((way.call().float() - expected).norm() / expected.norm()) <= limit
        ]
        for name in wrong:
            del ways[name]
        return wrong

    def _times(self, tensors: Operands, ways: dict[str, Way]) -> dict[str, list[float]]:
        """Microseconds and spread of each way: cold weights, warm code, interleaved."""
        calls = [way.call for way in ways.values()]
        self.timer.keep_cached(warm_up([ATEN, ONEDNN], tensors))
        first = [min(samples) for samples in self.timer.repeat(calls, 3)]
        repeats = REPEATS if min(first) < SLOW_US else SLOW_REPEATS
        found = map(lower_mean, self.timer.repeat(calls, repeats))
        return {name: [m.time_us, m.spread] for name, m in zip(ways, found, strict=True)}


def _listing(offered: list[Candidate]) -> CustomHeuristic:
    """A heuristic that abstains, and adds the candidates of a problem to a list."""

    def listed(problem: Any, candidates: Sequence[Candidate]) -> None:
        offered.extend(c for c in candidates if c not in offered)

    return CustomHeuristic(listed, "listing")


@contextlib.contextmanager
def threads(number: int) -> Iterator[None]:
    """Run torch with a number of threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)
