from dataclasses import replace

import numpy as np
import pytest

from tests.samples import H200
from torch_diode import Candidate, Candidates, MMShape, TritonGEMMConfig
from torch_diode.candidates.gpu.compiled_resources import config_keys, measured_kernels
from torch_diode.candidates.gpu.exhaustive import exhaustive_configs
from torch_diode.candidates.gpu.resources import (
    SAFE_SHARED_MEMORY,
    blocks_per_unit,
    fits,
    resources_of,
)
from torch_diode.hardware import known

UNMEASURED = replace(H200, arch="sm_90a")
"""The same chip with an architecture that has no measured rows, so that the rule applies."""


def _problem_of(name: str) -> tuple[str, MMShape]:
    template, precision, layout = name.split("/")
    problem = MMShape(
        "bmm" if template == "triton::bmm" else "mm",
        *(4096, 4096, 4096),
        dtype="float32" if precision == "tf32" else precision,
        tf32=precision == "tf32",
        transpose_a=layout[0] == "t",
        transpose_b=layout[1] == "t",
    )
    return template, problem


@pytest.mark.parametrize("name", sorted(measured_kernels("sm_90")))
def test_shared_memory_by_rule_is_no_less_than_compiled_and_close_for_long_loops(name):
    template, problem = _problem_of(name)
    configs = exhaustive_configs(template, "cuda")
    measured, rows = measured_kernels("sm_90")[name].find(config_keys(configs))
    assert measured.any()
    by_rule = resources_of(configs, problem, UNMEASURED).shared_bytes
    compiled = measured_kernels("sm_90")[name].shared_bytes
    assert (by_rule[measured] >= compiled[rows[measured]]).all()
    f = configs.fields
    pipelined = measured & (f["num_stages"] > 2)
    item = 4 if problem.dtype == "float32" else 2
    loop = (f["block_m"] + f["block_n"]) * f["block_k"] * (f["num_stages"] - 1) * item
    pipelined &= loop > f["block_m"] * f["block_n"] * item
    by_rule, compiled = by_rule[pipelined], compiled[rows[pipelined]]
    turned = f["block_n"][pipelined] * f["block_k"][pipelined] * item * problem.transpose_b
    tma = 1040 + 16 * f["num_stages"][pipelined] + turned if "tma" in template else 0
    above = by_rule - tma - compiled
    assert (above <= 0).mean() > 0.9
    assert (above <= 0.1 * compiled).all()


def test_measured_rows_take_precedence_over_the_rule():
    template, problem = _problem_of("triton::mm_persistent_tma/bfloat16/nt")
    configs = exhaustive_configs(template, "cuda")
    resources = resources_of(configs, problem, H200)
    kernels = measured_kernels("sm_90")["triton::mm_persistent_tma/bfloat16/nt"]
    measured, rows = kernels.find(config_keys(configs))
    measured &= resources.compiles
    assert measured.sum() == len(kernels.keys)
    assert (resources.shared_bytes[measured] == kernels.shared_bytes[rows[measured]]).all()
    assert (resources.registers[measured] == kernels.registers[rows[measured]]).all()


def test_registers_by_rule_are_near_those_of_compiled_kernels():
    ratios = []
    for name, kernels in measured_kernels("sm_90").items():
        template, problem = _problem_of(name)
        configs = exhaustive_configs(template, "cuda")
        measured, rows = kernels.find(config_keys(configs))
        by_rule = resources_of(configs, problem, UNMEASURED).registers[measured]
        ratios += (by_rule / kernels.registers[rows[measured]]).tolist()
    assert 0.75 < np.median(ratios) < 1.35


def test_a_huge_config_does_not_overflow():
    candidates = Candidates.of(
        [Candidate("triton::mm", TritonGEMMConfig(4096, 4096, 4096, 8, 32, 64))]
    )
    resources = resources_of(candidates, MMShape("mm", 4096, 4096, 4096), H200)
    assert resources.shared_bytes[0] == 32 * 8192 * 4096 * 2
    assert not fits(resources, candidates, H200).any()


def test_a_config_too_large_for_the_chip_does_not_fit():
    large = Candidate("triton::mm", TritonGEMMConfig(128, 128, 128, 8, 4, 4))
    small = Candidate("triton::mm", TritonGEMMConfig(64, 64, 32, 8, 3, 4))
    candidates = Candidates.of([large, small])
    resources = resources_of(candidates, MMShape("mm", 4096, 4096, 4096), H200)
    assert resources.shared_bytes.tolist() == [262144, 24576]
    assert fits(resources, candidates, H200).tolist() == [False, True]


def test_a_chip_of_unknown_shared_memory_has_the_safe_limit():
    configs = exhaustive_configs("triton::mm", "cuda")
    unknown = replace(H200, shared_memory_per_block=0)
    resources = resources_of(configs, MMShape("mm", 64, 64, 64), unknown)
    launchable = fits(resources, configs, unknown)
    assert launchable.any()
    assert resources.shared_bytes[launchable].max() <= SAFE_SHARED_MEMORY


def test_ampere_keeps_one_buffer_fewer_than_stages():
    """Values of kernels compiled for sm_80."""
    configs = [(64, 64, 32, 3, 4), (128, 128, 64, 3, 8), (128, 64, 64, 4, 4), (128, 128, 16, 1, 8)]
    candidates = Candidates.of(
        Candidate("triton::mm", TritonGEMMConfig(m, n, k, 8, s, w)) for m, n, k, s, w in configs
    )
    resources = resources_of(candidates, MMShape("mm", 4096, 4096, 4096), known("nvidia-a100"))
    assert resources.shared_bytes.tolist() == [16384, 65536, 73728, 32768]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, [10, 1]),  # registers: 48 for each of 128 threads; shared memory: 128 KiB a block
        ({"threads_per_unit": 512}, [4, 1]),
        ({"registers_per_unit": 0, "shared_memory_per_unit": 0, "threads_per_unit": 0}, [16, 16]),
    ],
)
def test_occupancy_is_limited_by_shared_memory_registers_and_threads(change, expected):
    small = Candidate("triton::mm", TritonGEMMConfig(16, 16, 16, 8, 2, 4))
    large = Candidate("triton::mm", TritonGEMMConfig(128, 128, 64, 8, 4, 8))
    candidates, chip = Candidates.of([small, large]), replace(UNMEASURED, **change)
    resources = resources_of(candidates, MMShape("mm", 4096, 4096, 4096), chip)
    assert blocks_per_unit(resources, candidates, chip).tolist() == expected
