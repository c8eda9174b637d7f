"""Kernels without a loop over K: where a block holds all of it, stages make no difference.

Configs that differ in nothing else are then the same kernel, to the last instruction. The space
has it once, with the fewest stages there are (one on NVIDIA's chips, two on AMD's, which have no
other); a table, a list or a solution may name it by any of them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from torch_diode.candidates.gpu.exhaustive import TMA_TEMPLATES
from torch_diode.types.candidate import Candidate
from torch_diode.types.problem import MMShape

FEWEST_STAGES = 1


def stages_matter(template: str, block_k: Any, k: Any) -> npt.NDArray[np.bool_]:
    """Whether kernels of so many along K in a block loop; TMA's do in any case, over tiles."""
    return np.asarray((np.asarray(block_k) < k) | (template in TMA_TEMPLATES))


def as_in_space(candidate: Candidate, problem: MMShape) -> Candidate:
    """The candidate by one name for all that are its kernel; on NVIDIA's chips the space's."""
    config = candidate.config
    if config is None or stages_matter(candidate.template, config.block_k, problem.K):
        return candidate
    return replace(candidate, config=replace(config, num_stages=FEWEST_STAGES))
