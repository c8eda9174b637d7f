"""Inductor's real lowering and Triton's real compiler, for a chip that is not here."""

import multiprocessing
from pathlib import Path

import numpy as np
import pytest
import torch

from torch_diode import Candidate, Hardware, MMShape, TritonGEMMConfig
from torch_diode.candidates.space import candidate_space
from torch_diode.collection.kernels.operands import Operands, operands
from torch_diode.types.candidate import ATEN, DECOMPOSE_K
from torch_diode.types.errors import InvalidValueError
from workflows.measuring import static_kernels as module
from workflows.measuring.static_kernels import StaticKernel, compile_static, static_kernels

ONLY_WITH_A_GPU = ("triton::mm_persistent_tma",) if torch.__version__ < "2.11" else ()
"""Rendering it makes a tensor on the GPU there."""
PROBLEMS = [
    MMShape("mm", 512, 1024, 768, transpose_b=True),
    MMShape("mm", 333, 257, 129, dtype="float32"),
    MMShape("addmm", 512, 1024, 768, dtype="float32", tf32=True, transpose_b=True),
    MMShape("addmm", 200, 328, 72, dtype="float16", bias="matrix"),
    MMShape("bmm", 128, 128, 64, B=16),
    MMShape("baddbmm", 128, 256, 64, B=8, transpose_b=True),
]


def some(problem: MMShape, hardware: Hardware, count: int) -> list[Candidate]:
    space = candidate_space(problem, hardware)
    left_out = (ATEN, DECOMPOSE_K, *ONLY_WITH_A_GPU)
    space = space.take(~np.any([space.is_template(name) for name in left_out], axis=0))
    return [space[int(i)] for i in np.linspace(0, len(space) - 1, count)]


@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_exactly_the_wanted_candidates_are_rendered_for_the_problems_tensors(problem, fake_h200):
    wanted = some(problem, fake_h200, 7)
    before = torch.backends.cuda.matmul.allow_tf32
    kernels = static_kernels(problem, wanted)
    assert sorted(str(k.candidate) for k in kernels) == sorted(map(str, wanted))
    assert torch.backends.cuda.matmul.allow_tf32 == before
    for kernel in kernels:
        text = Path(kernel.request.module_path).read_text()
        config = kernel.candidate.config
        assert f"BLOCK_M : tl.constexpr = {config.block_m}" in text
        assert f"num_warps={config.num_warps}" in text
        # Sizes are in the text, not arguments: that is what makes the kernel static.
        assert str(problem.K) in text
        # 2.9 to 2.15 word it differently, but a kernel with TF32 says so.
        assert ("ALLOW_TF32 : tl.constexpr = True" in text) == problem.tf32
    kernel = kernels[0]
    tensors = operands(problem, torch.device("cpu"), torch.Generator().manual_seed(0))
    given = given_to(kernel, tensors)
    assert len(given) == len(kernel.request.input_tensor_meta)
    other = MMShape(**{**problem.to_dict(), "transpose_b": not problem.transpose_b})
    tensors = operands(other, torch.device("cpu"), torch.Generator().manual_seed(0))
    with pytest.raises(InvalidValueError, match="strides"):
        given_to(kernel, tensors)


@pytest.mark.usefixtures("fake_h200")
def test_a_kernel_compiles_in_another_process_and_errors_are_returned():
    problem = PROBLEMS[4]
    config = TritonGEMMConfig(32, 32, 32, group_m=8, num_stages=2, num_warps=4)
    (kernel,) = static_kernels(problem, [Candidate("triton::bmm", config)])
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply(compile_static, (kernel,)) == ""
    path = Path(kernel.request.module_path)
    broken = path.with_name(f"broken_{path.name}")
    broken.write_text(path.read_text().replace("tl.dot(", "tl.no_such_function("))
    kernel.request.module_path, kernel.request.module_cache_key = str(broken), "broken"
    assert "no_such_function" in compile_static(kernel)


def given_to(kernel: StaticKernel, tensors: Operands) -> list[torch.Tensor]:
    given = [t for t in (tensors.bias, tensors.a, tensors.b) if t is not None]
    metas = kernel.request.input_tensor_meta
    return [module._as_rendered(t, meta) for t, meta in zip(given, metas, strict=True)]
