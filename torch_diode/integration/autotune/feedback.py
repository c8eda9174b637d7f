"""Listening to Inductor's autotuning: what it timed becomes a dataset."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
import torch._inductor.config as inductor_config
import torch._inductor.select_algorithm as select
from torch._inductor.kernel_inputs import MMKernelInputs

from torch_diode.collection.feedback_timings import METHOD, CollectionMode, FeedbackTimings
from torch_diode.collection.kernels.operands import operands, tf32_precision
from torch_diode.collection.timers.cuda import Measurement
from torch_diode.files.datasets import write_dataset
from torch_diode.integration.autotune.clean_benchmark import clean_benchmark
from torch_diode.integration.autotune.collected import dataset_provenance
from torch_diode.integration.deciding.problem import problem_of
from torch_diode.integration.hooks import device_hardware, torch_compat
from torch_diode.integration.hooks.fallback import Fallback
from torch_diode.integration.hooks.observer import Observer
from torch_diode.types.candidate import ATEN, DECOMPOSE_K, Candidate, TritonGEMMConfig
from torch_diode.types.dataset import Dataset
from torch_diode.types.errors import EmptySelectionError
from torch_diode.types.problem import MMShape

_VENDOR = frozenset({"mm", "addmm", "bias_addmm", "bmm", "baddbmm"})
_TRITON_NAME = re.compile(r"triton_(.+)_\d+")
_SPLIT_NAME = re.compile(r"decompose_k_mm_(\d+)_split.*")


class MatmulDatasetCollector:
    """Keeps what Inductor times while the `with` is open, of any code that compiles inside it::

        with MatmulDatasetCollector() as collector:
            torch.compile(model, mode="max-autotune")(x)
        collector.dataset()

    Inductor times nothing where it has one choice: torch-diode itself should be off, or observe.
    With `clean`, the clean timer stands in for Inductor's meanwhile: the times have no launch cost
    in them, and Inductor picks by them.
    Only this collector's hook is removed at the end; those of others stay.
    """

    def __init__(
        self, mode: CollectionMode = CollectionMode.TIMINGS, *, clean: bool = False
    ) -> None:
        self.fallback = Fallback()
        self._clean = clean
        self.timings = FeedbackTimings(torch_compat.installed_versions(), mode)
        self._open: contextlib.ExitStack | None = None

    def __enter__(self) -> MatmulDatasetCollector:
        self._open = contextlib.ExitStack()
        self._open.enter_context(Observer().installed())
        self._open.callback(add_feedback(self._heard))
        if self._clean:
            self._open.enter_context(clean_benchmark.opened())
        return self

    def __exit__(self, *_: object) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    def __len__(self) -> int:
        """Problems collected so far."""
        return len(self.timings)

    def dataset(self) -> Dataset:
        """What was collected so far."""
        return self.timings.dataset(dataset_provenance())

    def save(self, path: str | os.PathLike[str]) -> None:
        """What was collected so far, as a file of the form its ending names."""
        write_dataset(self.dataset(), path)

    def _heard(
        self,
        timings: Mapping[Any, float],
        name: str,
        input_nodes: Sequence[Any],
        choices: Sequence[Any],
        *_: Any,
    ) -> None:
        """Torch's callback; whatever is wrong in here must not fail the user's compile."""
        self.fallback.run(lambda: self._keep(timings, name, input_nodes))

    def _keep(self, timings: Mapping[Any, float], name: str, input_nodes: Sequence[Any]) -> None:
        problem = problem_of(name, MMKernelInputs(list(input_nodes)))
        hardware = device_hardware.hardware_of(input_nodes[0].get_device())
        times: dict[Candidate, float] = {}
        measured: dict[Candidate, Measurement] = {}
        for choice, milliseconds in timings.items():
            candidate = candidate_of(choice)
            # addmm has two vendor kernels, and candidates one: the faster stands for both.
            if candidate is None or (candidate in times and milliseconds >= times[candidate]):
                continue
            times[candidate] = milliseconds
            if self._clean and choice in clean_benchmark.measured:
                measured[candidate] = clean_benchmark.measured[choice]
        self.timings.add(hardware.name, problem, times, measured)


def add_feedback(function: Callable[..., None]) -> Callable[[], None]:
    """Have Inductor report every autotuned list to a function; returns what undoes it."""
    select.add_feedback_saver(function)

    def undo() -> None:
        cache = select.get_algorithm_selector_cache()
        cache.feedback_saver_fns = [f for f in cache.feedback_saver_fns if f is not function]

    return undo


@contextlib.contextmanager
def count_benchmarks() -> Iterator[dict[str, int]]:
    """How many `choices` Inductor has listed, and how many of them `benchmarked`, as it goes."""
    counts = {"choices": 0, "benchmarked": 0}
    selector: Any = select.AlgorithmSelectorCache
    own = vars(selector)["benchmark_choice"]

    def listed(choices: list[Any]) -> list[Any]:
        counts["choices"] += len(choices)
        return choices

    def benchmark_choice(cls: Any, *arguments: Any, **more: Any) -> float:
        try:
            return float(own.__get__(None, cls)(*arguments, **more))
        finally:
            counts["benchmarked"] += 1

    undo = torch_compat.add_preprocessing(listed)
    selector.benchmark_choice = classmethod(benchmark_choice)
    try:
        yield counts
    finally:
        selector.benchmark_choice = own
        undo()


def candidate_of(choice: Any) -> Candidate | None:
    """The candidate a choice of Inductor's is; None where no candidate stands for it."""
    if isinstance(choice, select.ExternKernelCaller):
        return Candidate(ATEN) if choice.choice.name in _VENDOR else None
    split = _SPLIT_NAME.fullmatch(choice.name)
    if split is not None:
        return Candidate(DECOMPOSE_K, split_k=int(split[1]))
    named = _TRITON_NAME.fullmatch(choice.name)
    if named is None or not isinstance(choice, select.TritonTemplateCaller):
        return None
    info = choice.log_info
    block_m, block_k, block_n = map(int, re.findall(r"\d+", info["tile_shape"]))
    return Candidate(
        f"triton::{named[1]}",
        TritonGEMMConfig(
            block_m,
            block_n,
            block_k,
            group_m=info["GROUP_M"],
            num_stages=info["num_stages"],
            num_warps=info["num_warps"],
        ),
    )


def autotune(problem: MMShape, device: str, search_space: str, *, clean: bool = False) -> Dataset:
    """One problem through Inductor's own max-autotune, for what it times on the way.

    With `clean`, by the clean timer.
    """
    generator = torch.Generator(device).manual_seed(0)
    tensors = operands(problem, torch.device(device), generator)
    given = [t for t in (tensors.bias, tensors.a, tensors.b) if t is not None]
    torch.compiler.reset()
    config = {
        "max_autotune": True,
        "max_autotune_gemm_search_space": search_space,
        "max_autotune_gemm_backends": "ATEN,TRITON",
        "triton.enable_persistent_tma_matmul": True,
    }
    compiled: Callable[..., Any] = torch.compile(getattr(torch, problem.op), dynamic=False)
    with (
        MatmulDatasetCollector(clean=clean) as collector,
        inductor_config.patch(config),
        tf32_precision(problem.tf32),
    ):
        compiled(*given)
    found = collector.dataset()
    if not len(found):
        raise EmptySelectionError(
            f"{METHOD}: got no timings from Inductor for {problem}; expected some; turn other "
            "choices handlers off (TORCH_DIODE=0), or use --method sweep"
        )
    return found
