"""The clean timer in place of Inductor's benchmarking of choices.

Inductor puts events around a Python call, so the launch is part of what it measures, and a small
kernel's time is mostly that: ATen, whose calls take longest, loses to kernels a third slower. Here
choices are timed by `collection.timer`: GPU time alone, cold L2, the candidates in turn. What
Inductor picks follows. A collector has everything timed so while it is open; where max-autotune
gets the few candidates a heuristic named, those are, and nothing else.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch._inductor.codegen.subgraph import SubgraphChoiceCaller
from torch._inductor.select_algorithm import (
    AlgorithmSelectorCache,
    ExternKernelCaller,
    TritonTemplateCaller,
)

from torch_diode.collection.timers.cpu import CpuTimer
from torch_diode.collection.timers.cuda import CudaTimer, Launch, Measurement
from torch_diode.collection.timers.queue_delay import QueueDelay
from torch_diode.integration.deciding.choice_builder import BENCHMARK_SET
from torch_diode.integration.hooks import device_hardware, torch_compat
from torch_diode.integration.hooks.fallback import Fallback

_VENDOR = (ExternKernelCaller, SubgraphChoiceCaller)
_KNOWN = (TritonTemplateCaller, *_VENDOR)
_ROUNDS_OF_FEW = ((1.5, 6), (1.15, 16))
"""Of the few a heuristic named most are close, and one of them will run: more samples."""
_KEPT = 256
"""Matmuls whose times are remembered."""
_MISSING = object()

Timings = dict[Any, float]


class CleanBenchmark:
    """Stands in for three methods of Inductor's selector while anyone has use for it.

    `measured` holds what each choice took, for as long as Inductor keeps the choice. A list with a
    choice of another kind in it (CUTLASS may break the CUDA context, and belongs in a process of
    its own) is left to Inductor, and so is one whose timing failed.
    """

    def __init__(self, selector: Any = AlgorithmSelectorCache) -> None:
        self.fallback = Fallback()
        self.measured: weakref.WeakKeyDictionary[Any, Measurement] = weakref.WeakKeyDictionary()
        self._selector = selector
        self._users = 0
        self._few: Fallback | None = None
        self._lock = threading.RLock()
        self._timers: dict[torch.device, CudaTimer] = {}
        self._head_starts: dict[torch.device, QueueDelay] = {}
        self._known: dict[tuple[Any, ...], dict[str, tuple[float, Measurement | None]]] = {}
        self._undo: list[Callable[[], None]] = []

    @contextlib.contextmanager
    def opened(self) -> Iterator[CleanBenchmark]:
        """In place for whatever Inductor tunes, until the last who opened it is done."""
        with self._lock:
            self._users += 1
            self._install()
        try:
            yield self
        finally:
            with self._lock:
                self._users -= 1
                if not self._users:
                    self._timers.clear()
                    self._remove()

    def enable_for_benchmark_sets(self, fallback: Fallback) -> None:
        """In place for lists of a heuristic's few from now on; what goes wrong with those is
        counted by the guard of who named them."""
        with self._lock:
            self._few = fallback
            self._install()

    def disable_for_benchmark_sets(self) -> None:
        """Those are Inductor's to time again."""
        with self._lock:
            self._few = None
            self._remove()

    def _takes(self, choices: Sequence[Any]) -> bool:
        if not (
            self._users or (self._few and any(torch_compat.annotations_of(c).get(BENCHMARK_SET) for c in choices))
        ):
            return False
        return all(isinstance(choice, _KNOWN) for choice in choices)

    def _install(self) -> None:
        if self._undo:
            return
        selector = self._selector
        benchmark, lookup = selector.benchmark_choices, selector.lookup
        apart, here = selector.benchmark_in_sub_process, selector.benchmark_in_current_process

        # Each asks whether anyone has use for it: somebody may have wrapped it, and keep it.
        def benchmark_choices(
            cls: Any, choices: Sequence[Any], autotune_args: Any, *rest: Any, **more: Any
        ) -> Timings:
            collective = any(rest) or any(more.values())
            if not collective and self._takes(choices):
                fallback = self.fallback if self._users else self._few or self.fallback
                found = fallback.run(lambda: self._benchmark(choices, autotune_args))
                if found is not None:
                    return found
            own: Timings = benchmark(choices, autotune_args, *rest, **more)
            return own

        def benchmark_in_sub_process(
            cls: Any, choices: Sequence[Any], *rest: Any, **more: Any
        ) -> Timings:
            # A user who asked for processes apart gets them; a collector needs its times.
            ours = self._users and self._takes(choices)
            found: Timings = (here if ours else apart)(choices, *rest, **more)
            return found

        def cached(
            cache: Any,
            choices: Sequence[Any],
            op: str,
            inputs: str,
            benchmark: Callable[[Any], Timings] | None,
            hint_override: int | None = None,
        ) -> Timings:
            if self._takes(choices):
                return self._lookup((op, inputs, hint_override), choices, benchmark)
            found: Timings = lookup(cache, choices, op, inputs, benchmark, hint_override)
            return found

        self._put("benchmark_choices", classmethod(benchmark_choices))
        self._put("benchmark_in_sub_process", classmethod(benchmark_in_sub_process))
        self._put("lookup", cached)

    def _put(self, name: str, value: Any) -> None:
        selector = self._selector
        before = vars(selector).get(name, _MISSING)
        setattr(selector, name, value)

        def undo() -> None:
            if vars(selector).get(name) is not value:
                return  # somebody put theirs over ours: it is theirs to remove
            if before is _MISSING:
                delattr(selector, name)
            else:
                setattr(selector, name, before)

        self._undo.append(undo)

    def _remove(self) -> None:
        if self._users or self._few:
            return
        while self._undo:
            self._undo.pop()()
        self._known.clear()

    def _lookup(
        self,
        key: tuple[Any, ...],
        choices: Sequence[Any],
        benchmark: Callable[[Any], Timings] | None,
    ) -> Timings:
        """As Inductor's cache of timings, but of those made since this was opened: what is on its
        disk was measured another way."""
        matmul = (*key, torch_compat.tf32_allowed())
        names = {choice: choice.hash_key() for choice in choices}
        known = self._known.get(matmul, {})
        if known.keys() >= set(names.values()):
            for choice, name in names.items():
                measured = known[name][1]
                if measured is not None:
                    self.measured[choice] = measured
            return {choice: known[name][0] for choice, name in names.items()}
        if benchmark is None:
            return {}
        timings = benchmark(choices)
        found = {names[choice]: (ms, self.measured.get(choice)) for choice, ms in timings.items()}
        if len(self._known) >= _KEPT:
            self._known.clear()
        self._known[matmul] = {**known, **found}
        return timings

    def _benchmark(self, choices: Sequence[Any], autotune_args: Any) -> Timings | None:
        timings: Timings = dict.fromkeys(choices, float("inf"))
        launches: dict[Any, Launch] = {}
        _, out = autotune_args.get_benchmark_tensors(False).unpack()
        timer = self._timer(out.device)
        if timer is None or not out.numel():
            return None
        try:
            for choice in choices:
                tensors = autotune_args.get_benchmark_tensors(isinstance(choice, _VENDOR))
                launch = _tried(choice, *tensors.unpack())
                if launch is not None:
                    launches[choice] = launch
            if launches:
                with _on(timer.device):
                    found = self._measured(timer, list(launches.values()))
                for choice, measured in zip(launches, found, strict=True):
                    self.measured[choice] = measured
                    timings[choice] = measured.time_us / 1000
            return timings
        finally:
            for choice in choices:
                torch_compat.release_launch(choice)

    def _measured(self, timer: CudaTimer, launches: Sequence[Launch]) -> list[Measurement]:
        if self._users:
            return timer.measure(launches)
        found = timer.measure(launches, _ROUNDS_OF_FEW)
        self._head_starts[timer.device] = timer.head_start
        return found

    def _timer(self, device: torch.device) -> CudaTimer | None:
        """The device's timer. A collector's is kept; else the memory it clears the L2 with goes
        back, and only what it has learnt of this machine stays."""
        known = self._timers.get(device)
        if known is not None or device.type not in ("cuda", "cpu"):
            return known
        if device.type == "cpu":
            timer: CudaTimer = CpuTimer()
        else:
            l2_bytes = device_hardware.hardware_of(device).l2_bytes
            learnt = self._head_starts.get(device, QueueDelay())
            with _on(device):
                timer = CudaTimer(device, l2_bytes, head_start=learnt)
        if self._users:
            self._timers[device] = timer
        return timer


def _tried(choice: Any, inputs: Sequence[Any], out: torch.Tensor) -> Launch | None:
    """What runs a choice, seen to run once; None where it cannot."""
    try:
        launch = torch_compat.launch_of(choice, inputs, out)
        with _on(out.device):
            launch()
            if out.device.type == "cuda":
                torch.cuda.synchronize(out.device)
    except _cannot_run():
        return None
    return launch


def _cannot_run() -> tuple[type[Exception], ...]:
    """What running a choice raises where it does not compile, fit the chip or launch."""
    try:
        from triton.runtime.errors import OutOfResources
    except ImportError:
        return (RuntimeError,)
    return (RuntimeError, OutOfResources)


def _on(device: torch.device) -> contextlib.AbstractContextManager[Any]:
    """The device made current: events and launches go to its stream."""
    return torch.cuda.device(device) if device.type == "cuda" else contextlib.nullcontext()


clean_benchmark = CleanBenchmark()
"""The one there is: Inductor's selector is one, too."""
