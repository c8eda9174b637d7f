from __future__ import annotations

from dataclasses import replace

import pytest

pytest.importorskip("triton")

from torch_diode.collection.kernels.compile import longest_first
from torch_diode.collection.kernels.library import KernelLibrary
from torch_diode.collection.workers.compile_ahead import CompileAhead
from torch_diode.integration.capture.template_source import template_source
from torch_diode.types.candidate import Candidate, TritonGEMMConfig
from torch_diode.types.problem import MMShape

ARCH = 90
PROBLEM = MMShape("mm", 64, 64, 64, dtype="float32")
SIZES = (16, 32, 64)


@pytest.fixture(scope="module")
def jobs():
    library = KernelLibrary(template_source, 132)
    configs = [TritonGEMMConfig(m, 16, 16, num_stages=1, num_warps=1) for m in SIZES]
    specs = [library.spec_for(PROBLEM, Candidate("triton::mm", config)) for config in configs]
    return library.jobs(specs)


def test_a_kernel_that_ends_its_compiler_is_an_outcome_and_the_others_are_compiled(jobs):
    source, spec = jobs[1]
    deadly = replace(source, text="import os\nos.kill(os.getpid(), 9)\n" + source.text)
    with CompileAhead([jobs[0], (deadly, spec), jobs[2]], ARCH, 1) as ahead:
        errors = {outcome.spec.config.block_m: outcome.error for outcome in ahead.finished()}
    assert errors == {16: "", 32: "compiler ended by SIGKILL", 64: ""}


def test_one_can_wait_for_some_and_not_for_ever(jobs):
    with CompileAhead(jobs, ARCH, 1) as ahead:
        assert ahead.wait_for([jobs[0][1]], 120)
        assert jobs[0][1] in ahead.outcomes
        absent = replace(jobs[0][1], tf32=True)
        assert not ahead.wait_for([absent], 0.1)


def test_big_tiles_come_first(jobs):
    assert [spec.config.block_m for _, spec in longest_first(jobs)] == [64, 32, 16]
