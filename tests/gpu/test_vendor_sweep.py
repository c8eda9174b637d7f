"""The vendor's kernel on many problems at once, against one at a time."""

import numpy as np
import pytest
import torch

if not torch.cuda.is_available():
    pytest.skip("needs a CUDA device", allow_module_level=True)

from torch_diode import Candidate, Candidates, MMShape
from torch_diode.collection.kernels.launch import Launcher
from torch_diode.collection.kernels.library import KernelLibrary
from torch_diode.collection.sweep import Sweep
from torch_diode.collection.timers.cuda import CudaTimer
from torch_diode.hardware import detect
from torch_diode.integration.capture.template_source import template_source
from workflows.measuring.vendor_sweep import VendorSweep

PROBLEMS = [
    MMShape("mm", 512, 1024, 2048, transpose_b=True),
    MMShape("mm", 1023, 777, 1001, dtype="float16"),
    MMShape("addmm", 256, 4096, 1024, dtype="float16", transpose_b=True),
    MMShape("bmm", 128, 256, 512, B=32, dtype="float32", tf32=True),
    MMShape("baddbmm", 64, 512, 128, B=16, transpose_a=True),
    MMShape("mm", 512, 512, 512, dtype="float32"),
]


def test_the_times_are_those_of_the_sweep():
    timer = CudaTimer(torch.device("cuda", 0), detect().l2_bytes)
    before = torch.backends.cuda.matmul.allow_tf32
    vendor = VendorSweep(detect().name, timer, {}, pool_bytes=1 << 28)
    together = {}
    for part in vendor.time(PROBLEMS):
        for row in range(len(part)):
            together[part.problem(row)] = part.table.column("time_us")[row].as_py()
    assert torch.backends.cuda.matmul.allow_tf32 == before
    launcher = Launcher(KernelLibrary(template_source, detect().units))
    sweep = Sweep(detect().name, launcher, timer, {})
    ratios = []
    for problem in PROBLEMS:
        alone = sweep.time(problem, Candidates.of([Candidate("aten")]))
        ratios.append(together[problem] / alone.table.column("time_us")[0].as_py())
    assert np.abs(np.log(ratios)).max() < 0.15, ratios
