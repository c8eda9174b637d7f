"""Analytical times of a CPU's candidates, for the analytical heuristic."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from torch_diode.model.features.kernel_times import KernelConstants, kernel_us
from torch_diode.model.features.problem_arrays import OneProblem
from torch_diode.types.candidate import CPP_GEMM, LIBRARIES, Candidate, CppGEMMConfig
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape

CPU_DTYPES = ("float32", "bfloat16", "float16")


def kernel_times_us(
    problem: MMShape, candidates: Candidates, hardware: Hardware, constants: KernelConstants
) -> npt.NDArray[np.float64]:
    """Modelled microseconds of each candidate, in their order."""
    one = OneProblem(problem, hardware.threads)
    return np.array(
        [kernel_us(one, hardware, c.template, _block(c), constants) for c in candidates]
    )


def _block(candidate: Candidate) -> tuple[int, int] | None:
    config = candidate.config
    return (config.block_m, config.block_n) if isinstance(config, CppGEMMConfig) else None


def why_unknown(problem: MMShape, candidates: Candidates) -> str:
    """The dtype or the templates that the model does not know; empty where it knows all."""
    if problem.dtype not in CPU_DTYPES or problem.out_dtype != problem.dtype:
        return f"no rates of {problem.dtype} to {problem.out_dtype} on a CPU"
    names = {candidates.templates[i] for i in np.unique(candidates.template)}
    unknown = sorted(names - {*LIBRARIES, CPP_GEMM})
    return f"no model of {', '.join(unknown)} on a CPU" if unknown else ""
