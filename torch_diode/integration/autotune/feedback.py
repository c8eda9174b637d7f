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
from torch_diode.collection.sampling_options import ShapeSampling
from torch_diode.collection.timers.timer import Measurement
from torch_diode.files.datasets import write_dataset
from torch_diode.hardware import detect
from torch_diode.integration import registration
from torch_diode.integration.autotune.clean_benchmark import clean_benchmark
from torch_diode.integration.cpu import onednn
from torch_diode.integration.deciding.problem import problem_of
from torch_diode.integration.hooks import device_hardware, torch_compat
from torch_diode.integration.hooks.fallback import Fallback
from torch_diode.integration.hooks.observer import Observer
from torch_diode.types import validation
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
from torch_diode.types.errors import EmptySelectionError, InvalidValueError
from torch_diode.types.problem import BATCHED, MMShape
from torch_diode.types.shapes import OperationShapeSet
from torch_diode.types.table import Table

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

    or between `start_collection` and `stop_collection`; `collect_data` draws problems and compiles
    them itself. Inductor does not time a single choice: turn torch-diode off, or set mode
    `observe`. With `clean`, the clean benchmark replaces Inductor's: times do not include launches,
    and Inductor picks by them. At the end only this collector's hook is removed.
    """

    def __init__(self, *, clean: bool = False) -> None:
        self.fallback = Fallback()
        self._clean = clean
        self.timings = FeedbackTimings(torch_compat.installed_versions())
        self._open: contextlib.ExitStack | None = None

    def __enter__(self) -> MatmulDatasetCollector:
        self.start_collection()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop_collection()

    def start_collection(self) -> None:
        """Collect from now on; nothing changes where it does already."""
        if self._open is not None:
            return
        with contextlib.ExitStack() as stack:
            stack.enter_context(Observer().installed(registration._registration))
            stack.callback(add_feedback(self._on_feedback))
            if self._clean:
                stack.enter_context(clean_benchmark.opened())
            self._open = stack.pop_all()

    def stop_collection(self) -> None:
        """Collect no more; what was collected stays."""
        if self._open is not None:
            self._open.close()
            self._open = None

    def __len__(self) -> int:
        """Problems collected so far."""
        return len(self.timings)

    def dataset(self) -> Dataset:
        """The timings collected so far."""
        return self.timings.dataset(torch_compat.dataset_provenance())

    get_dataset = dataset

    def to_table(self, k: int = 1) -> Table:
        """A lookup table of the k fastest candidates of every problem."""
        return Table.from_dataset(self.dataset(), k)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the timings collected so far, in the format of the file's suffix."""
        write_dataset(self.dataset(), path)

    save_to_file = save

    def collect_data(
        self,
        mode: CollectionMode = CollectionMode.RANDOM,
        shapes: OperationShapeSet | None = None,
        *,
        search_space: str = "EXHAUSTIVE",
        device: str | None = None,
        seed: int = 0,
        **sampling: Any,
    ) -> Dataset:
        """Compile problems so that Inductor times their candidates, and return all timings so far.

        `shapes` are the problems in mode OPERATION_SHAPE_SET; in the others they are drawn by a
        `ShapeSampling` of the further arguments, such as `num_shapes=10`. The device is a GPU where
        there is one. On a CPU Inductor times linears alone: mm and addmm.
        """
        device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        problems = _problems(mode, shapes, device, seed, sampling)
        was_open = self._open is not None
        with registration.paused():  # a heuristic would leave Inductor few candidates to time
            self.start_collection()
            try:
                for problem in problems:
                    compile_autotuned(problem, device, search_space)
            finally:
                if not was_open:
                    self.stop_collection()
        return self.dataset()

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


def _problems(
    mode: CollectionMode,
    shapes: OperationShapeSet | None,
    device: str,
    seed: int,
    sampling: dict[str, Any],
) -> Sequence[MMShape]:
    """The problems of a mode on a device."""
    validation.instance("collect_data", "mode", mode, CollectionMode)
    if mode is CollectionMode.OPERATION_SHAPE_SET:
        validation.instance("collect_data", "shapes", shapes, OperationShapeSet)
        assert shapes is not None
        return shapes.problems
    by_law = {"log_normal": True} if mode is CollectionMode.LOG_NORMAL else {}
    offered = {"operations": ("mm", "addmm"), "layouts": ("nt",)} if device == "cpu" else {}
    return ShapeSampling(**{**offered, **by_law, **sampling}).problems(detect(device), seed)


def compile_autotuned(problem: MMShape, device: str, search_space: str) -> None:
    """Compile and run one problem so that Inductor times its candidates; on a CPU it does only for
    a linear with a constant weight."""
    if device == "cpu":
        _compile_linear(problem)
        return
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
    with inductor_config.patch(config), tf32_precision(problem.tf32):
        compiled(*given)


def _compile_linear(problem: MMShape) -> None:
    if problem.op in BATCHED or not problem.transpose_b or problem.transpose_a:
        raise InvalidValueError(
            f"collect_data: got {problem}; expected mm or addmm with layout nt: on a CPU Inductor "
            "times linears alone; `collect` times the others"
        )
    dtype = getattr(torch, problem.dtype)
    linear = torch.nn.Linear(problem.K, problem.N, problem.op == "addmm", dtype=dtype).eval()
    config = {"max_autotune": True, "max_autotune_gemm_backends": "ATEN,CPP", "freezing": True}
    torch.compiler.reset()
    with inductor_config.patch(config), torch.no_grad():
        torch.compile(linear, dynamic=False)(torch.randn(problem.M, problem.K, dtype=dtype))


def autotune(problem: MMShape, device: str, search_space: str, *, clean: bool = False) -> Dataset:
    """Time one problem by Inductor's max-autotune, with `clean` by the clean benchmark."""
    with MatmulDatasetCollector(clean=clean) as collector:
        compile_autotuned(problem, device, search_space)
    dataset = collector.dataset()
    if not len(dataset):
        raise EmptySelectionError(
            f"{METHOD}: got no timings from Inductor for {problem}; expected some; turn other "
            "choices handlers off (TORCH_DIODE=0), or use --method sweep"
        )
    return dataset
