"""Clean timing and the sweep on a real GPU."""

import time

import numpy as np
import pytest
import torch

if not torch.cuda.is_available():
    pytest.skip("needs a CUDA device", allow_module_level=True)

from tests.gpu.programs import run
from torch_diode import Candidate, Candidates, MMShape
from torch_diode.candidates.space import candidate_space
from torch_diode.collection.kernels.launch import Launcher
from torch_diode.collection.kernels.library import KernelLibrary
from torch_diode.collection.sweep import Sweep
from torch_diode.collection.timers.cuda import CudaTimer
from torch_diode.files.datasets import read_dataset
from torch_diode.hardware import detect
from torch_diode.integration.capture.template_source import template_source

DEVICE = torch.device("cuda", 0)


@pytest.fixture(scope="module")
def timer():
    return CudaTimer(DEVICE, detect().l2_bytes)


def test_a_slow_launch_does_not_change_the_time(timer):
    a = torch.randn(256, 256, device=DEVICE)
    out = torch.empty_like(a)

    def quick():
        torch.mm(a, a, out=out)

    def late():
        time.sleep(2e-4)
        torch.mm(a, a, out=out)

    quick_us, late_us = (float(np.median(s)) for s in timer.repeat([quick, late], 20))
    assert late_us < 1.3 * quick_us


def test_a_memory_bound_kernel_is_no_faster_than_memory(timer):
    values = torch.randn(2**24, device=DEVICE)
    out = torch.empty_like(values)
    (samples,) = timer.repeat([lambda: torch.add(values, 1, out=out)], 10)
    gbps = 2 * values.nbytes / (np.median(samples) * 1e3)
    assert gbps < 1.05 * (detect().memory_gbps or 1e9), "the L2 was not cold"


@pytest.mark.parametrize(
    "problem",
    [
        MMShape("mm", 512, 1024, 768, transpose_b=True),
        MMShape("mm", 333, 257, 129, dtype="float16"),
        MMShape("addmm", 512, 1024, 768, dtype="float32", tf32=True, transpose_b=True),
        MMShape("bmm", 128, 128, 64, B=16),
        MMShape("baddbmm", 128, 256, 64, B=8, transpose_b=True),
    ],
    ids=str,
)
def test_a_sweep_times_every_candidate_and_none_is_wrong(problem, timer):
    hardware = detect()
    launcher = Launcher(KernelLibrary(template_source, hardware.units))
    sweep = Sweep(
        hardware.name,
        launcher,
        timer,
        {"torch": "2", "triton": "3"},
        shared_memory=hardware.shared_memory_per_block,
    )
    space = candidate_space(problem, hardware)
    chosen = space.take(np.unique(np.linspace(0, len(space) - 1, 24).astype(int)))
    dataset = sweep.time(
        problem,
        Candidates.concat(
            [Candidates.of([Candidate("aten")]), chosen.take(~chosen.is_template("aten"))]
        ),
    )
    times = dataset.values("time_us")
    assert set(dataset.texts("status")) <= {"ok", "out_of_resources"}
    assert np.isfinite(times).sum() > len(dataset) // 2
    assert np.nanmin(times) < 1000


def test_the_collection_workflow_times_a_problem_class(tmp_path):
    run(
        *("workflows/collect_matmul.py", "train", "--output", tmp_path, "--problems", "4"),
        *(
            "--classes",
            "bmm bfloat16 tn aligned",
            "--configs",
            "6",
            "--minutes",
            "2",
            "--processes",
            "4",
        ),
    )
    dataset = read_dataset(tmp_path)
    assert len(dataset.problems) == 4
    assert dataset.texts("hardware") == [detect().name]


def test_refined_times_reach_the_requested_precision(timer):
    problem = MMShape("mm", 128, 1024, 512, transpose_b=True)
    candidates = Candidates.of(
        [Candidate("aten"), *(c for c in candidate_space(problem, detect()) if c.config)][:40]
    )
    launcher = Launcher(KernelLibrary(template_source, detect().units))
    sweep = Sweep(detect().name, launcher, timer, {}, band=0.005)
    table = sweep.time(problem, candidates).table
    times = np.array(table.column("time_us").to_pylist(), dtype=float)
    repeats = np.array(table.column("repeats").to_pylist())
    spread = np.array(table.column("spread").to_pylist(), dtype=float)
    best = int(np.nanargmin(times))
    assert repeats[best] >= 15
    assert repeats[0] >= repeats[best], "ATen is timed again throughout"
    if repeats[best] < 400:
        assert 1.96 * 1.09 * spread[best] / 0.6745 / repeats[best] ** 0.5 <= 0.005


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_splits_of_k_are_correct_and_timed(timer, dtype):
    problem = MMShape("mm", 16, 32, 8192, dtype=dtype)
    space = candidate_space(problem, detect())
    splits = space.take(space.is_template("decompose_k"))
    candidates = Candidates.concat([Candidates.of([Candidate("aten")]), splits])
    launcher = Launcher(KernelLibrary(template_source, detect().units))
    table = Sweep(detect().name, launcher, timer, {}).time(problem, candidates).table
    assert len(splits) >= 5
    assert set(table.column("status").to_pylist()) == {"ok"}
    aten, *others = table.column("time_us").to_pylist()
    assert np.isfinite([aten, *others]).all()
    assert aten > 0
    # Two parts of a long K in float32 take nine times as long as what ATen does.
    assert all(0.2 * aten < time < 20 * aten for time in others)
