"""Compiled matmuls on a real GPU run exactly the config the heuristic chose.

mm, addmm, bmm and baddbmm; plain and max-autotune; forward and backward; static and dynamic; with
and without CUDA graphs.
"""

import itertools
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from tests.integration.cases import CONFIG
from tests.integration.forced import Forced, abstaining
from torch_diode.integration import registration
from torch_diode.types.candidate import TritonGEMMConfig

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

TMA_CONFIG = TritonGEMMConfig(128, 128, 64, group_m=8, num_stages=3, num_warps=8)
B, M, N, K = 4, 384, 512, 640
OTHER_M = 272
OPS: dict[str, tuple[Callable[..., torch.Tensor], tuple[tuple[Any, ...], ...]]] = {
    "mm": (torch.mm, (("M", K), (K, N))),
    "addmm": (torch.addmm, ((N,), ("M", K), (K, N))),
    "bmm": (torch.bmm, ((B, "M", K), (B, K, N))),
    "baddbmm": (torch.baddbmm, ((B, "M", N), (B, "M", K), (B, K, N))),
}
PLAIN, GRAPHS = None, "reduce-overhead"
TOLERANCE = {torch.bfloat16: 1e-2, torch.float16: 2e-3, torch.float32: 1e-5}
TUNED, TUNED_GRAPHS = "max-autotune-no-cudagraphs", "max-autotune"


@dataclass(frozen=True)
class Outcome:
    """Result of compiling and running one case; the error is checked already."""

    decided: int
    configs: list[dict[str, int]]
    vendor_calls: int
    benchmarks: int
    codes: list[str]


@pytest.fixture(autouse=True)
def clean():
    """Each test compiles from an empty cache and leaves torch-diode disabled."""
    from torch._inductor.utils import fresh_cache

    registration.disable()
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    with fresh_cache():
        yield
    registration.disable()
    torch._dynamo.reset()


def tensors(op: str, m: int, dtype: torch.dtype, dynamic: bool) -> list[torch.Tensor]:
    torch.manual_seed(m)
    result = []
    for shape in OPS[op][1]:
        sizes = [m if size == "M" else size for size in shape]
        tensor = torch.randn(sizes, device="cuda", dtype=dtype).requires_grad_()
        if dynamic and "M" in shape:
            torch._dynamo.mark_dynamic(tensor, shape.index("M"))
        result.append(tensor)
    return result


def step(fn: Callable[..., torch.Tensor], inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    """Forward and backward: copies of the output and the gradients."""
    torch.compiler.cudagraph_mark_step_begin()
    out = fn(*inputs)
    torch.manual_seed(0)
    grads = torch.autograd.grad(out, inputs, torch.randn_like(out))
    return [out.detach().clone(), *(grad.clone() for grad in grads)]


def relative_error(got: list[torch.Tensor], expected: list[torch.Tensor]) -> float:
    worst = 0.0
    for a, b in zip(got, expected, strict=True):
        worst = max(worst, float((a.double() - b.double()).norm() / b.double().norm()))
    return worst


def reference(op: str, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    """The same step in float64."""
    wide = [tensor.detach().double().requires_grad_() for tensor in inputs]
    out = OPS[op][0](*wide)
    torch.manual_seed(0)
    narrow = torch.empty(out.shape, device="cuda", dtype=inputs[0].dtype)
    grads = torch.autograd.grad(out, wide, torch.randn_like(narrow).double())
    return [out.detach(), *grads]


def configs_in(codes: list[str]) -> list[dict[str, int]]:
    """The block sizes of the matmul templates in generated code, with their stages and warps."""
    configs = []
    for code in codes:
        for kernel in re.findall(r"'''(.*?)'''", code, re.S):
            if "config_args" not in kernel and "triton_tem" not in kernel:
                continue
            sizes = {
                n: int(v) for n, v in re.findall(r"(BLOCK_[MNK]).*?=\s*(\d+)\s*$", kernel, re.M)
            }
            launch = re.search(r"num_stages=(\d+),\s*num_warps=(\d+)", kernel)
            assert launch is not None, kernel[:2000]
            configs.append({**sizes, "num_stages": int(launch[1]), "num_warps": int(launch[2])})
    return configs


def expected_config(config: TritonGEMMConfig) -> dict[str, int]:
    return {
        "BLOCK_M": config.block_m,
        "BLOCK_N": config.block_n,
        "BLOCK_K": config.block_k,
        "num_stages": config.num_stages,
        "num_warps": config.num_warps,
    }


@pytest.fixture
def seen_lists():
    """Every list of choices Inductor selects from."""
    from torch._inductor import select_algorithm

    lists: list[list[Any]] = []

    def record(choices):
        lists.append(list(choices))
        return choices

    select_algorithm.add_preprocessing_fn(record)
    yield lists
    cache = select_algorithm.get_algorithm_selector_cache()
    cache.preprocessing_fns.remove(record)


def compile_and_run(
    op: str, mode: str | None, dynamic: bool = False, dtype: torch.dtype = torch.bfloat16
) -> Outcome:
    """Compile, run often enough to record and replay CUDA graphs, and check results."""
    from torch._dynamo.utils import counters
    from torch._inductor.utils import run_and_get_code

    fn = torch.compile(OPS[op][0], mode=mode)
    inputs = tensors(op, M, dtype, dynamic)
    before = len(registration.explain())
    result, codes = run_and_get_code(lambda: step(fn, inputs))
    expected = reference(op, inputs)
    errors = [relative_error(result, expected)]
    errors += [relative_error(step(fn, inputs), expected) for _ in range(3)]
    if dynamic:
        frames = counters["stats"]["unique_graphs"]
        others = tensors(op, OTHER_M, dtype, dynamic)
        errors.append(relative_error(step(fn, others), reference(op, others)))
        assert counters["stats"]["unique_graphs"] == frames, "compiled again for another M"
    assert all(error < TOLERANCE[dtype] for error in errors), errors
    decided = len(registration.explain()) - before
    vendor_calls = len(re.findall(r"extern_kernels\.\w+\(", "\n".join(codes)))
    benchmarks = counters["inductor"]["select_algorithm_autotune"]
    return Outcome(decided, configs_in(codes), vendor_calls, benchmarks, codes)


SINGLE_CASES = [
    *itertools.product(OPS, (PLAIN,), (False, True), (torch.bfloat16,)),
    *itertools.product(("mm", "baddbmm"), (GRAPHS,), (False,), (torch.bfloat16,)),
    *itertools.product(("mm", "baddbmm"), (PLAIN,), (False,), (torch.float16, torch.float32)),
]


@pytest.mark.parametrize(("op", "mode", "dynamic", "dtype"), SINGLE_CASES)
def test_plain_mode_runs_the_chosen_config_and_benchmarks_nothing(op, mode, dynamic, dtype):
    with registration.using(Forced(CONFIG)):
        outcome = compile_and_run(op, mode, dynamic, dtype)
    assert registration.status().counters.fallbacks == {}
    # One matmul forward, two backward: the backward graph is compiled on autograd's thread.
    assert outcome.decided == 3
    assert outcome.configs == [expected_config(CONFIG)] * 3
    assert outcome.vendor_calls == 0
    assert outcome.benchmarks == 0


# Every op once; dynamic shapes and CUDA graphs are the same for all of them.
TUNED_CASES = [
    *((op, TUNED, False) for op in OPS),
    ("mm", TUNED, True),
    ("addmm", TUNED_GRAPHS, False),
]


@pytest.mark.parametrize(("op", "mode"), [("mm", TUNED), ("addmm", TUNED_GRAPHS), ("bmm", TUNED)])
def test_max_autotune_in_single_mode_runs_the_chosen_config_and_benchmarks_nothing(op, mode):
    with registration.using(Forced(CONFIG), mode="single"):
        outcome = compile_and_run(op, mode)
    assert outcome.configs == [expected_config(CONFIG)] * 3
    assert outcome.benchmarks == 0


@pytest.mark.parametrize(("op", "mode", "dynamic"), TUNED_CASES)
def test_max_autotune_benchmarks_the_chosen_few_with_aten_among_them(op, mode, dynamic, seen_lists):
    from torch._inductor.select_algorithm import ExternKernelCaller

    with registration.using(Forced(CONFIG), top=2):
        outcome = compile_and_run(op, mode, dynamic)
    assert outcome.decided == 3
    assert len(seen_lists) == 3
    for choices in seen_lists:
        # addmm has two vendor kernels, which both count as ATen.
        assert len([c for c in choices if not isinstance(c, ExternKernelCaller)]) == 1
        assert 1 <= len([c for c in choices if isinstance(c, ExternKernelCaller)]) <= 2
        triton = next(c for c in choices if not isinstance(c, ExternKernelCaller))
        named = triton.annotations["ktc"].params.to_kwargs()
        assert {name: named[name] for name in expected_config(CONFIG)} == expected_config(CONFIG)
    assert outcome.benchmarks >= 3


@pytest.mark.parametrize("op", ["mm", "addmm"])
def test_tma_can_be_offered_in_plain_mode_without_torchs_config(op):
    if torch.cuda.get_device_capability() < (9, 0):
        pytest.skip("no TMA on this GPU")
    with registration.using(Forced(TMA_CONFIG, "triton::mm_persistent_tma"), tma=True):
        outcome = compile_and_run(op, PLAIN)
    assert outcome.configs == [expected_config(TMA_CONFIG)] * 3
    assert all("tensor_descriptor" in code or "descriptor" in code for code in outcome.codes)
    assert outcome.benchmarks == 0


@pytest.mark.parametrize("op", OPS)
def test_choosing_the_vendor_kernel_is_plain_torch(op):
    with registration.using(Forced(None)):
        outcome = compile_and_run(op, PLAIN)
    assert (outcome.decided, outcome.configs, outcome.vendor_calls) == (3, [], 3)


def test_abstaining_gives_the_code_of_plain_torch():
    from torch._inductor.utils import run_and_get_code

    def model(x, w, b):
        return torch.nn.functional.gelu(torch.addmm(b, x, w)) @ w.T

    inputs = [torch.randn(size, device="cuda") for size in ((256, 512), (512, 1024), (1024,))]

    def code():
        torch._dynamo.reset()
        _, codes = run_and_get_code(torch.compile(model), *inputs)
        return re.sub(r"AOT ID: .*|/[\w./-]+", "", "\n".join(codes))

    plain = code()
    with registration.using(abstaining()):
        assert code() == plain
