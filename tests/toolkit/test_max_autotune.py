"""Which timings a solution means."""

from __future__ import annotations

from torch_diode.toolkit.max_autotune import _loops
from torch_diode.types.candidate import ATEN, Candidate, TritonGEMMConfig
from torch_diode.types.dataset import Dataset
from torch_diode.types.problem import MMShape
from torch_diode.types.timing import Timing


def test_stages_tell_kernels_apart_only_where_something_loops() -> None:
    problem = MMShape("mm", 512, 512, 64)
    short, whole = (TritonGEMMConfig(64, 64, k) for k in (32, 64))
    candidates = {
        Candidate("triton::mm", short): True,
        Candidate("triton::mm", whole): False,
        Candidate("triton::mm_persistent_tma", whole): True,
        Candidate(ATEN): True,
    }
    timings = [Timing("nvidia-h200", problem, candidate, 1.0) for candidate in candidates]
    assert _loops(Dataset.from_timings(timings)).tolist() == list(candidates.values())
