"""Inductor's own kernels for one problem: fixed sizes, one per config, to compile and time.

The real lowering runs with a handler that selects exactly the wanted candidates; each rendered
kernel is kept before anything is benchmarked. Neither this nor compiling needs a GPU, so both can
run in other processes, and the results are sent between processes as Inductor sends them to its
own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch._inductor.codecache import PyCodeCache
from torch._inductor.virtualized import V

from torch_diode.collection.kernels.operands import Operands, tf32_precision
from torch_diode.collection.timers.timer import Launch
from torch_diode.heuristics.base import Heuristic
from torch_diode.integration.autotune.feedback import candidate_of
from torch_diode.integration.capture.default_configs import inputs_of
from torch_diode.integration.capture.fake_gpu import lower
from torch_diode.integration.hooks import torch_compat
from torch_diode.integration.hooks.choices import DiodeInductorChoices
from torch_diode.types.candidate import ATEN, TMA_TEMPLATES, Candidate
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.errors import InvalidValueError
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape
from torch_diode.types.ranking import Ranking

_CONFIG = {
    "max_autotune": True,
    "max_autotune_gemm_backends": "ATEN,TRITON",
    "max_autotune_gemm_search_space": "DEFAULT",
}


@dataclass(frozen=True)
class StaticKernel:
    """One candidate as Inductor renders it for one problem.

    `request` is Inductor's, with the file of the kernel and how it is called.
    """

    candidate: Candidate
    request: Any


class Exactly(Heuristic):
    """Heuristic that ranks the wanted candidates first, in their order."""

    name = "exactly"

    def __init__(self, wanted: Sequence[Candidate]) -> None:
        self._place = {candidate: float(i + 1) for i, candidate in enumerate(wanted)}

    def rank(self, problem: MMShape, candidates: Candidates, hardware: Hardware) -> Ranking | None:
        """Wanted candidates by position, all others behind."""
        last = float(len(self._place) + 1)
        times = np.array([self._place.get(candidate, last) for candidate in candidates])
        return Ranking.by_time(times, self.name)

    def fingerprint(self) -> str:
        """A constant, since nothing is cached with it."""
        return f"exactly {sorted(map(str, self._place))}"


def static_kernels(problem: MMShape, candidates: Sequence[Candidate]) -> list[StaticKernel]:
    """Kernels of those candidates that Inductor can render; vendor kernels are left out.

    Call it inside `fake_gpu.pretend`, or on a machine with the GPU: torch before 2.11 renders the
    persistent template only there.
    """
    found: list[Any] = []

    def keep(choices: list[Any]) -> list[Any]:
        found.extend(choices)
        return choices[:1]  # one choice is not benchmarked

    wanted = list(dict.fromkeys([Candidate(ATEN), *candidates]))  # it takes a place in any case
    tma = any(candidate.template in TMA_TEMPLATES for candidate in wanted)
    config = {**_CONFIG, "triton.enable_persistent_tma_matmul": tma}
    handler = DiodeInductorChoices(Exactly(wanted), top=len(wanted), tma=tma)
    undo = torch_compat.add_preprocessing(keep)
    try:
        with V.set_choices_handler(handler), tf32_precision(problem.tf32):
            lower(getattr(torch, problem.op), inputs_of(problem), config, generate=False)
    finally:
        undo()
        handler.decider.release()
    kernels: dict[Candidate, StaticKernel] = {}
    for choice in found:
        candidate = candidate_of(choice)
        if candidate in wanted and candidate is not None and candidate.config is not None:
            kernels[candidate] = StaticKernel(candidate, choice.bmreq)
    return list(kernels.values())


def compile_static(kernel: StaticKernel) -> str:
    """Compile into Triton's disk cache, for the real or fake chip.

    Returns the compiler's error, or an empty text.
    """
    from triton.compiler.errors import CompilationError
    from triton.runtime.errors import TritonError

    try:
        _function(kernel).precompile(warm_cache_only=True)
    except (CompilationError, TritonError, RuntimeError) as fault:
        return f"{type(fault).__name__}: {fault}"
    return ""


def bind_static(kernel: StaticKernel, tensors: Operands) -> Launch:
    """Bind the kernel to a problem's tensors."""
    given = [t for t in (tensors.bias, tensors.a, tensors.b) if t is not None]
    metas = kernel.request.input_tensor_meta
    inputs = [_as_rendered(tensor, meta) for tensor, meta in zip(given, metas, strict=True)]
    launch: Launch = kernel.request.make_run_fn(*inputs, out=tensors.out)
    return launch


def _function(kernel: StaticKernel) -> Any:
    request = kernel.request
    module = PyCodeCache.load_by_key_path(request.module_cache_key, request.module_path)
    return getattr(module, request.kernel_name)


def _as_rendered(tensor: torch.Tensor, meta: Any) -> torch.Tensor:
    """The tensor in the layout the kernel was rendered for: a bias may have been expanded to a
    matrix, and one of a single column then copied."""
    sizes, strides = tuple(meta.sizes), tuple(meta.strides)
    if tuple(tensor.shape) != sizes:
        tensor = tensor.expand(sizes)
        if sizes[-1] == 1:
            tensor = tensor.contiguous()
    matters = [i for i, size in enumerate(sizes) if size > 1]
    if any(tensor.stride(i) != strides[i] for i in matters):
        raise InvalidValueError(
            f"kernel: got a tensor {tuple(tensor.shape)} with strides {tensor.stride()}; expected "
            f"strides {strides}"
        )
    return tensor
