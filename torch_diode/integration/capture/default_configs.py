"""The list that Inductor's max-autotune would benchmark for a problem, without a GPU.

Taken from its real lowering: the list depends on the sizes and on the torch release.
"""

from __future__ import annotations

from typing import Any

import torch
from torch._inductor.choices import InductorChoices
from torch._inductor.select_algorithm import ExternKernelChoice
from torch._inductor.virtualized import V

from torch_diode.integration import registration
from torch_diode.integration.capture.fake_gpu import Input, lower, pretend
from torch_diode.integration.hooks import torch_compat
from torch_diode.types.candidate import ATEN, Candidate, TritonGEMMConfig
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.errors import MissingPartError
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import BATCHED, MMShape

_CONFIG = {
    "max_autotune": True,
    "max_autotune_gemm_backends": "ATEN,TRITON",
    "max_autotune_gemm_search_space": "DEFAULT",
    "triton.enable_persistent_tma_matmul": True,
}


class ListRecorder(InductorChoices):
    """Records the choices offered, and returns only vendor kernels, so that lowering is quick."""

    def __init__(self) -> None:
        super().__init__()
        self.candidates: dict[Candidate, None] = {Candidate(ATEN): None}

    def uuid(self) -> str:
        """Constant: nothing is compiled with it."""
        return "torch-diode list recorder"

    def _finalize_template_configs(self, template_choices: Any, *_: Any, **__: Any) -> list[Any]:
        vendor = []
        for uid, choices in template_choices.items():
            for choice in choices:
                if isinstance(choice.template, ExternKernelChoice):
                    vendor.append(choice)
                elif uid.startswith("triton::"):
                    config = config_of(choice.params.to_kwargs())
                    self.candidates[Candidate(uid, config)] = None
        return vendor


def config_of(kwargs: dict[str, Any]) -> TritonGEMMConfig:
    """The config of a template's keyword arguments."""
    return TritonGEMMConfig(
        kwargs["BLOCK_M"],
        kwargs["BLOCK_N"],
        kwargs["BLOCK_K"],
        group_m=kwargs["GROUP_M"],
        num_stages=kwargs["num_stages"],
        num_warps=kwargs["num_warps"],
    )


def default_candidates(problem: MMShape, hardware: Hardware) -> Candidates:
    """ATen and the configs of Inductor's DEFAULT list for a problem on an NVIDIA chip."""
    if torch_compat.matmul_hook() != torch_compat.FINALIZE_HOOK:
        raise MissingPartError(
            "DEFAULT: got torch 2.9, which lists configs in another way; expected 2.10 or later; "
            "use --search-space EXHAUSTIVE"
        )
    recorder = ListRecorder()
    # torch-diode would override any handler, and leave it few choices.
    with registration.paused(), pretend(hardware), V.set_choices_handler(recorder):
        lower(getattr(torch, problem.op), inputs_of(problem), _CONFIG, generate=False)
    return Candidates.of(recorder.candidates)


def inputs_of(problem: MMShape) -> list[Input]:
    """The op's inputs for a problem, in argument order."""
    dtype = getattr(torch, problem.dtype)
    m, n, k = problem.M, problem.N, problem.K
    batch = (problem.B,) if problem.op in BATCHED else ()

    def matrix(rows: int, columns: int, transposed: bool) -> Input:
        inner = (1, rows) if transposed else (columns, 1)
        strides = (rows * columns, *inner) if batch else inner
        return Input((*batch, rows, columns), dtype, strides)

    bias = {"none": (), "vector": (n,), "matrix": (*batch, m, n)}[problem.bias]
    operands = [matrix(m, k, problem.transpose_a), matrix(k, n, problem.transpose_b)]
    return ([Input(bias, dtype)] if bias else []) + operands
