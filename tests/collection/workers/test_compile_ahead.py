from dataclasses import replace

import pytest

pytest.importorskip("triton")

from torch_diode import Candidate, MMShape, TritonGEMMConfig
from torch_diode.collection.kernels.library import KernelLibrary
from torch_diode.collection.workers.compile_ahead import CompileAhead
from torch_diode.integration.capture.template_source import template_source

PROBLEM = MMShape("mm", 64, 64, 64, dtype="float32")


def test_a_kernel_that_kills_its_compiler_has_an_error_and_the_others_are_compiled():
    library = KernelLibrary(template_source, 132)
    configs = [TritonGEMMConfig(m, 16, 16, num_stages=1, num_warps=1) for m in (16, 32, 64)]
    specs = [library.spec_for(PROBLEM, Candidate("triton::mm", config)) for config in configs]
    first, (source, spec), last = library.jobs(specs)
    deadly = replace(source, text="import os\nos.kill(os.getpid(), 9)\n" + source.text)
    with CompileAhead([first, (deadly, spec), last], arch=90, processes=1) as ahead:
        errors = {outcome.spec.config.block_m: outcome.error for outcome in ahead.as_completed()}
    assert errors == {16: "", 32: "compiler ended by SIGKILL", 64: ""}
    assert ahead.outcomes.keys() == set(specs)
