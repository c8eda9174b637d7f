"""Datasets from the timings of Inductor's autotuning."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch._inductor.config as inductor_config
import torch._inductor.select_algorithm as select
from torch._inductor.kernel_inputs import MMKernelInputs

from torch_diode.collection.feedback_timings import METHOD, CollectionMode, FeedbackTimings
from torch_diode.collection.kernels.operands import operands, tf32_precision
from torch_diode.collection.timers.timer import Measurement
from torch_diode.files.datasets import write_dataset
from torch_diode.integration.autotune.clean_benchmark import clean_benchmark
from torch_diode.integration.cpu import onednn
from torch_diode.integration.deciding.problem import problem_of
from torch_diode.integration.hooks import device_hardware, torch_compat
from torch_diode.integration.hooks.fallback import Fallback
from torch_diode.integration.hooks.observer import Observer
from torch_diode.types.candidate import (
    ATEN,
    CPP_GEMM,
    DECOMPOSE_K,
    MKL_PACKED,
    ONEDNN_PACKED,
    Candidate,
    CppGEMMConfig,
    TritonGEMMConfig,
)
from torch_diode.types.dataset import Dataset
from torch_diode.types.errors import EmptySelectionError
from torch_diode.types.problem import BATCHED, MMShape

_EXTERN = dict.fromkeys(("mm", "addmm", "bias_addmm", "bmm", "baddbmm"), ATEN)
_EXTERN |= {"_mkl_linear": MKL_PACKED, "_linear_pointwise": ONEDNN_PACKED, **onednn.KERNELS}
"""Names of Inductor's extern kernels, and the libraries they call."""
_FROZEN = {"packed_linear": 2, "linear_unary": 1}
"""Linears of frozen graphs on a CPU, and the position of the weight among their inputs."""
_TRITON_NAME = re.compile(r"triton_(.+)_\d+")
_SPLIT_NAME = re.compile(r"decompose_k_mm_(\d+)_split.*")


class MatmulDatasetCollector:
    """Collects the timings of every matmul that Inductor autotunes inside the `with`::

        with MatmulDatasetCollector() as collector:
            torch.compile(model, mode="max-autotune")(x)
        collector.dataset()

    Inductor does not time a single choice: turn torch-diode off, or set mode `observe`. With
    `clean`, the clean benchmark replaces Inductor's: times do not include launches, and Inductor
    picks by them. At the end only this collector's hook is removed.
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
        self._open.callback(add_feedback(self._on_feedback))
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
        """The timings collected so far."""
        return self.timings.dataset(torch_compat.dataset_provenance())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the timings collected so far, in the format of the file's suffix."""
        write_dataset(self.dataset(), path)

    def _on_feedback(
        self,
        timings: Mapping[Any, float],
        name: str,
        input_nodes: Sequence[Any],
        choices: Sequence[Any],
        *_: Any,
    ) -> None:
        """Torch's callback; errors in it must not fail the user's compile."""
        self.fallback.run(lambda: self._add(timings, name, input_nodes))

    def _add(self, timings: Mapping[Any, float], name: str, input_nodes: Sequence[Any]) -> None:
        if name in _FROZEN:
            problem = frozen_problem(name, input_nodes)
        else:
            problem = problem_of(name, MMKernelInputs(list(input_nodes)))
        hardware = device_hardware.hardware_of(input_nodes[0].get_device())
        times: dict[Candidate, float] = {}
        measured: dict[Candidate, Measurement] = {}
        for choice, milliseconds in timings.items():
            candidate = candidate_of(choice)
            if candidate is not None and candidate.template == CPP_GEMM and problem.op in BATCHED:
                continue  # another template of the same micro-kernels
            # addmm has two vendor kernels but one candidate for both: the faster counts.
            if candidate is None or (candidate in times and milliseconds >= times[candidate]):
                continue
            times[candidate] = milliseconds
            if self._clean and choice in clean_benchmark.measured:
                measured[candidate] = clean_benchmark.measured[choice]
        self.timings.add(hardware.name, problem, times, measured, hardware.threads)


def add_feedback(function: Callable[..., None]) -> Callable[[], None]:
    """Have Inductor report every autotuned list to a function; returns the undo function."""
    select.add_feedback_saver(function)

    def undo() -> None:
        cache = select.get_algorithm_selector_cache()
        cache.feedback_saver_fns = [f for f in cache.feedback_saver_fns if f is not function]

    return undo


def candidate_of(choice: Any) -> Candidate | None:
    """The candidate of one of Inductor's choices; None where there is none."""
    if isinstance(choice, select.ExternKernelCaller):
        template = _EXTERN.get(choice.choice.name)
        # With an operation fused behind it, a linear is another problem.
        plain = choice.kwargs.get("attr", "none") == "none"
        return Candidate(template) if template is not None and plain else None
    blocking = getattr(getattr(choice, "template", None), "register_blocking", None)
    if blocking is not None:
        sizes = (blocking.block_m, blocking.block_n, blocking.block_k)
        return Candidate(CPP_GEMM, CppGEMMConfig(*sizes))
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


def frozen_problem(name: str, input_nodes: Sequence[Any]) -> MMShape:
    """The problem of a linear with a constant weight on a CPU, whose node has N x K elements."""
    x, weight = input_nodes[0], input_nodes[_FROZEN[name]]
    (m, k), (n, _) = (torch_compat.hints(node.get_size()) for node in (x, weight))
    dtype = str(x.get_dtype()).removeprefix("torch.")
    biased = len(input_nodes) > _FROZEN[name] + 1
    op, bias = ("addmm", "vector") if biased else ("mm", "none")
    return MMShape(op, m, n, k, dtype=dtype, transpose_b=True, bias=bias)


def autotune(problem: MMShape, device: str, search_space: str, *, clean: bool = False) -> Dataset:
    """Time one problem by Inductor's max-autotune, with `clean` by the clean benchmark."""
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
    dataset = collector.dataset()
    if not len(dataset):
        raise EmptySelectionError(
            f"{METHOD}: got no timings from Inductor for {problem}; expected some; turn other "
            "choices handlers off (TORCH_DIODE=0), or use --method sweep"
        )
    return dataset
