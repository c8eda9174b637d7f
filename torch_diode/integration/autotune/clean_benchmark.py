"""Clean benchmarking: the sweep's timer in place of Inductor's benchmark of choices.

Inductor records events around a Python call, which includes the launch, most of a small kernel's
time: ATen, whose calls take longest, loses to kernels a third slower. Here choices are timed by
`collection.timers`: GPU time alone, cold L2, candidates interleaved. Inductor picks by these times.
Used for everything while a collector is open, and for the benchmark sets of a heuristic.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch._inductor.codegen.cpp_template_kernel import CppTemplateCaller
from torch._inductor.codegen.subgraph import SubgraphChoiceCaller
from torch._inductor.select_algorithm import (
    AlgorithmSelectorCache,
    ExternKernelCaller,
    TritonTemplateCaller,
)

from torch_diode._bounded_cache import BoundedCache
from torch_diode.collection.timers.cpu import CpuTimer
from torch_diode.collection.timers.cpu_load import UnwatchedCpu
from torch_diode.collection.timers.cuda import CudaTimer
from torch_diode.collection.timers.queue_delay import QueueDelay
from torch_diode.collection.timers.timer import Launch, Measurement, Timer
from torch_diode.integration.deciding.choice_builder import BENCHMARK_SET
from torch_diode.integration.hooks import device_hardware, torch_compat
from torch_diode.integration.hooks.fallback import Fallback

_VENDOR = (ExternKernelCaller, SubgraphChoiceCaller)
_KNOWN = (TritonTemplateCaller, CppTemplateCaller, *_VENDOR)
_BENCHMARK_SET_ROUNDS = ((1.5, 6), (1.15, 16))
"""More samples: most candidates of a benchmark set are close, and one of them will run."""
_CACHED_MATMULS = 256
_MISSING = object()

Timings = dict[Any, float]


class CleanBenchmark:
    """Replaces three methods of Inductor's selector while in use.

    `measured` holds each choice's measurement for as long as Inductor keeps the choice. Left to
    Inductor: lists with other kinds of choices (CUTLASS may break the CUDA context, and is
    benchmarked in a subprocess), and those whose timing failed.
    """

    def __init__(self, selector: Any = AlgorithmSelectorCache) -> None:
        self.fallback = Fallback()
        self.measured: weakref.WeakKeyDictionary[Any, Measurement] = weakref.WeakKeyDictionary()
        self._selector = selector
        self._users = 0
        self._set_fallback: Fallback | None = None
        self._lock = threading.RLock()
        self._timers: dict[torch.device, Timer] = {}
        self._queue_delays: dict[torch.device, QueueDelay] = {}
        self._known: BoundedCache[tuple[Any, ...], dict[str, tuple[float, Measurement | None]]] = (
            BoundedCache(_CACHED_MATMULS)
        )
        self._undo: list[Callable[[], None]] = []

    @contextlib.contextmanager
    def opened(self) -> Iterator[CleanBenchmark]:
        """Used for everything Inductor benchmarks, until the last `with` ends."""
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
        """Use it for benchmark sets from now on; `fallback` counts their errors."""
        with self._lock:
            self._set_fallback = fallback
            self._install()

    def disable_for_benchmark_sets(self) -> None:
        """Leave benchmark sets to Inductor again."""
        with self._lock:
            self._set_fallback = None
            self._remove()

    def _takes(self, choices: Sequence[Any]) -> bool:
        if not (
            self._users
            or (
                self._set_fallback
                and any(torch_compat.annotations_of(c).get(BENCHMARK_SET) for c in choices)
            )
        ):
            return False
        return all(isinstance(choice, _KNOWN) for choice in choices)

    def _install(self) -> None:
        if self._undo:
            return
        selector = self._selector
        benchmark, lookup = selector.benchmark_choices, selector.lookup
        in_subprocess = selector.benchmark_in_sub_process
        in_process = selector.benchmark_in_current_process

        # Each checks that it is still in use: someone may have wrapped it, and call it later.
        def benchmark_choices(
            cls: Any, choices: Sequence[Any], autotune_args: Any, *rest: Any, **more: Any
        ) -> Timings:
            collective = any(rest) or any(more.values())
            if not collective and self._takes(choices):
                fallback = self.fallback if self._users else self._set_fallback or self.fallback
                timings = fallback.run(lambda: self._benchmark(choices, autotune_args))
                if timings is not None:
                    return timings
            own: Timings = benchmark(choices, autotune_args, *rest, **more)
            return own

        def benchmark_in_sub_process(
            cls: Any, choices: Sequence[Any], *rest: Any, **more: Any
        ) -> Timings:
            # A user who set subprocesses gets them; a collector needs the times.
            ours = self._users and self._takes(choices)
            timings: Timings = (in_process if ours else in_subprocess)(choices, *rest, **more)
            return timings

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
            timings: Timings = lookup(cache, choices, op, inputs, benchmark, hint_override)
            return timings

        self._put("benchmark_choices", classmethod(benchmark_choices))
        self._put("benchmark_in_sub_process", classmethod(benchmark_in_sub_process))
        self._put("lookup", cached)

    def _put(self, name: str, value: Any) -> None:
        selector = self._selector
        before = vars(selector).get(name, _MISSING)
        setattr(selector, name, value)

        def undo() -> None:
            if vars(selector).get(name) is not value:
                return  # someone has replaced ours since, and will restore it
            if before is _MISSING:
                delattr(selector, name)
            else:
                setattr(selector, name, before)

        self._undo.append(undo)

    def _remove(self) -> None:
        if self._users or self._set_fallback:
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
        """Like Inductor's cache of timings, but only with timings made here: those on disk were
        measured another way."""
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
        self._known[matmul] = {**known, **found}
        return timings

    def _benchmark(self, choices: Sequence[Any], autotune_args: Any) -> Timings | None:
        timings: Timings = dict.fromkeys(choices, float("inf"))
        launches: dict[Any, Launch] = {}
        operands: list[Sequence[torch.Tensor]] = []
        _, out = autotune_args.get_benchmark_tensors(False).unpack()
        timer = self._timer(out.device)
        if timer is None or not out.numel():
            return None
        try:
            for choice in choices:
                tensors = autotune_args.get_benchmark_tensors(isinstance(choice, _VENDOR))
                inputs, out = tensors.unpack()
                if out.device.type == "cpu":  # one must not warm the weight for the next
                    inputs = [_copy(tensor) for tensor in inputs]
                    operands.append(inputs)  # a C++ kernel's launch has their addresses alone
                launch = _runnable(choice, inputs, out)
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

    def _measured(self, timer: Timer, launches: Sequence[Launch]) -> list[Measurement]:
        if self._users:
            return timer.measure(launches)
        found = timer.measure(launches, _BENCHMARK_SET_ROUNDS)
        if isinstance(timer, CudaTimer):
            self._queue_delays[timer.device] = timer.queue_delay
        return found

    def _timer(self, device: torch.device) -> Timer | None:
        """The device's timer. Kept while a collector is open; otherwise the buffer that flushes the
        L2 is freed, and only the queue delay is kept."""
        known = self._timers.get(device)
        if known is not None or device.type not in ("cuda", "cpu"):
            return known
        if device.type == "cpu":
            # A compile goes on, whatever else the machine does: candidates are timed in turn.
            watch = None if self._users else UnwatchedCpu()
            timer: Timer = CpuTimer(0, device_hardware.hardware_of(device).l3_bytes, watch)
        else:
            l2_bytes = device_hardware.hardware_of(device).l2_bytes
            delay = self._queue_delays.get(device, QueueDelay())
            with _on(device):
                timer = CudaTimer(device, l2_bytes, queue_delay=delay)
        if self._users:
            self._timers[device] = timer
        return timer


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    """A copy with the same strides, the tensor itself where it has another form."""
    if tensor.layout != torch.strided:
        return tensor
    copied = tensor.clone(memory_format=torch.preserve_format)
    return copied if copied.stride() == tensor.stride() else tensor


def _runnable(choice: Any, inputs: Sequence[Any], out: torch.Tensor) -> Launch | None:
    """A choice's launch function, after one run; None where it fails."""
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
    """Exceptions of a choice that does not compile, fit the chip or launch."""
    try:
        from triton.runtime.errors import OutOfResources
    except ImportError:
        return (RuntimeError,)
    return (RuntimeError, OutOfResources)


def _on(device: torch.device) -> contextlib.AbstractContextManager[Any]:
    """Make the device current: events and launches go to its stream."""
    return torch.cuda.device(device) if device.type == "cuda" else contextlib.nullcontext()


clean_benchmark = CleanBenchmark()
"""One per process, like Inductor's selector."""
