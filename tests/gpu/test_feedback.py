"""The clean timer in place of Inductor's, and Inductor's own kernels, on a real GPU."""

import time
from typing import Any

import numpy as np
import pytest
import torch

if not torch.cuda.is_available():
    pytest.skip("needs a CUDA device", allow_module_level=True)

from tests.gpu.programs import run
from torch_diode.candidates.space import candidate_space
from torch_diode.collection.kernels.operands import operands, tf32_precision
from torch_diode.files.datasets import read_dataset
from torch_diode.hardware import detect
from torch_diode.integration import registration
from torch_diode.integration.autotune.clean_benchmark import clean_benchmark
from torch_diode.integration.autotune.feedback import MatmulDatasetCollector, autotune
from torch_diode.integration.hooks import torch_compat
from torch_diode.types.candidate import ATEN, DECOMPOSE_K, Candidate
from torch_diode.types.problem import MMShape
from workflows.measuring.static_kernels import bind_static, static_kernels

SMALL = MMShape("mm", 256, 512, 256, transpose_b=True)


@pytest.fixture(autouse=True)
def off():
    registration.disable()


def times(dataset: Any) -> dict[Candidate, float]:
    return {t.candidate: t.time_us for t in dataset if t.time_us is not None}


@pytest.mark.parametrize(
    "problem",
    [
        SMALL,
        MMShape("addmm", 512, 1024, 768, dtype="float32", tf32=True, transpose_b=True),
        MMShape("bmm", 128, 128, 64, B=16, dtype="float16"),
        MMShape("mm", 32, 32, 16384),
    ],
    ids=str,
)
def test_clean_times_cover_inductors_choices(problem):
    clean = autotune(problem, "cuda", "DEFAULT", clean=True)
    assert clean.texts("method") == ["feedback-clean"]
    assert {timing.problem for timing in clean} == {problem}
    found = times(clean)
    assert Candidate(ATEN) in found
    assert len(found) > 5
    assert all(timing.repeats > 0 for timing in clean if timing.time_us)
    assert clean_benchmark.fallback.counters.fallbacks == {}
    if problem.K == 16384:
        assert any(candidate.template == DECOMPOSE_K for candidate in found)


def test_clean_times_exclude_the_launch(monkeypatch):
    quick = times(autotune(SMALL, "cuda", "DEFAULT", clean=True))
    own = torch_compat.launch_of

    def slow_to_launch(*of):
        launch = own(*of)

        def late():
            until = time.perf_counter() + 200e-6
            while time.perf_counter() < until:
                pass
            launch()

        return late

    monkeypatch.setattr(torch_compat, "launch_of", slow_to_launch)
    late = times(autotune(SMALL, "cuda", "DEFAULT", clean=True))
    assert clean_benchmark.fallback.counters.fallbacks == {}
    both = quick.keys() & late.keys()
    assert len(both) > 5
    ratios = [late[c] / quick[c] for c in both]
    assert np.median(ratios) < 1.3, ratios  # kernels of 5 us: with the launch it would be 40


def test_a_users_program_gives_clean_timings_and_correct_results():
    torch.manual_seed(0)
    layer = torch.nn.Linear(384, 640, device="cuda", dtype=torch.bfloat16)
    x = torch.randn(96, 384, device="cuda", dtype=torch.bfloat16)
    torch.compiler.reset()
    with MatmulDatasetCollector(clean=True) as collector, torch.no_grad():
        mode = "max-autotune-no-cudagraphs"
        result = torch.compile(layer, mode=mode, dynamic=False)(x)
        expected = layer(x)
    assert float((result - expected).float().norm() / expected.float().norm()) < 1e-2
    dataset = collector.dataset()
    assert {(t.problem.M, t.problem.N, t.problem.K) for t in dataset} == {(96, 640, 384)}
    assert dataset.texts("method") == ["feedback-clean"]


@pytest.mark.parametrize(
    "problem",
    [
        MMShape("mm", 512, 1024, 768, transpose_b=True),
        MMShape("mm", 333, 257, 129, dtype="float16"),
        MMShape("addmm", 512, 1024, 768, dtype="float32", tf32=True, transpose_b=True),
        MMShape("addmm", 200, 328, 72, bias="matrix"),
        MMShape("bmm", 128, 128, 64, B=16),
        MMShape("baddbmm", 128, 256, 64, B=8, transpose_b=True),
    ],
    ids=str,
)
def test_inductors_static_kernels_give_atens_result(problem):
    space = candidate_space(problem, detect())
    space = space.take(~space.is_template(DECOMPOSE_K) & ~space.is_template(ATEN))
    chosen = [space[int(i)] for i in np.linspace(0, len(space) - 1, 5)]
    kernels = static_kernels(problem, [Candidate(ATEN), *chosen])
    assert {kernel.candidate for kernel in kernels} == set(chosen)
    device = torch.device("cuda", 0)
    with tf32_precision(problem.tf32):
        tensors = operands(problem, device, torch.Generator(device).manual_seed(0))
        expected = tensors.aten()().float().clone()
    for kernel in kernels:
        tensors.out.fill_(float("nan"))
        bind_static(kernel, tensors)()
        error = float((tensors.out.float() - expected).norm() / expected.norm())
        assert error < 2e-2, kernel.candidate


def test_the_fidelity_workflow_times_static_and_sweep_kernels(tmp_path):
    ended = run(
        *("workflows/measure_fidelity.py", "--output", tmp_path, "--hardware", detect().name),
        *("--problems", "4", "--configs", "8", "--minutes", "2", "--processes", "4"),
    )
    static = read_dataset(tmp_path / "static.parquet")
    sweep = read_dataset(tmp_path / "sweep.parquet")
    assert len(static.problems) == len(sweep.problems) == 4
    assert static.texts("method") == ["inductor-static"]
    assert "wrong" not in static.texts("status")
    assert "static/sweep" in ended.stdout
