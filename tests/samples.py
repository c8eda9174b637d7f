"""A few things by hand, for tests that need one and not any."""

from torch_diode import Candidate, Dataset, MMShape, Timing, TritonGEMMConfig
from torch_diode.hardware import known

H200 = known("nvidia-h200")

ATEN = Candidate("aten")
SMALL = Candidate("triton::mm", TritonGEMMConfig(32, 64, 32))
LARGE = Candidate("triton::mm", TritonGEMMConfig(128, 256, 64, num_stages=4, num_warps=8))
SPLIT = Candidate("decompose_k", split_k=4)

LINEAR = MMShape("mm", 512, 4096, 4096, transpose_b=True)
BIASED = MMShape("addmm", 64, 128, 256, dtype="float16")
BATCHED = MMShape("bmm", 128, 128, 64, B=8, dtype="float16")

TIMINGS = (
    Timing("nvidia-h200", LINEAR, ATEN, 20.5, repeats=5, spread=0.01, torch="2.13.0"),
    Timing("nvidia-h200", LINEAR, SMALL, 41.25, torch="2.13.0"),
    Timing("nvidia-h200", LINEAR, LARGE, 19.75, torch="2.13.0"),
    Timing("nvidia-h200", BIASED, ATEN, 6.5, torch="2.13.0"),
    Timing("nvidia-h200", BIASED, SMALL, 5.25, torch="2.13.0"),
    Timing("nvidia-h200", BIASED, LARGE, None, status="out_of_resources", torch="2.13.0"),
    Timing("nvidia-h100", BATCHED, ATEN, 7.75, method="feedback", torch="2.11.0+cu130"),
)


def dataset() -> Dataset:
    """Three problems of three operations on two chips, one timing of which could not run."""
    return Dataset.from_timings(TIMINGS, {"collected": ("2026-01-01",)})
