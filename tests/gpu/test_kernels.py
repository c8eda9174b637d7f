"""Kernels of a sweep on a real GPU: results for every template, op, dtype and layout."""

import itertools

import pytest
import torch

if not torch.cuda.is_available():
    pytest.skip("needs a GPU", allow_module_level=True)
pytest.importorskip("triton")

from torch_diode import Candidate, MMShape, TritonGEMMConfig
from torch_diode.collection.kernels.launch import Launcher
from torch_diode.collection.kernels.library import (
    BMM,
    MM,
    PERSISTENT_TMA,
    KernelLibrary,
    KernelSpec,
)
from torch_diode.collection.kernels.operands import Operands, operands
from torch_diode.collection.kernels.outcome import KernelInfeasibleError
from torch_diode.integration.capture.template_source import template_source

CONFIGS = [
    TritonGEMMConfig(16, 16, 16, group_m=8, num_stages=1, num_warps=1),
    TritonGEMMConfig(64, 128, 32, group_m=4, num_stages=3, num_warps=4),
]
KINDS = [
    (MM, "mm", "none"),
    (MM, "addmm", "vector"),
    (MM, "addmm", "matrix"),
    (BMM, "bmm", "none"),
    (BMM, "baddbmm", "vector"),
    (BMM, "baddbmm", "matrix"),
    (PERSISTENT_TMA, "mm", "none"),
    (PERSISTENT_TMA, "addmm", "vector"),
    (PERSISTENT_TMA, "addmm", "matrix"),
]
DTYPES = [("bfloat16", False), ("float16", False), ("float32", False), ("float32", True)]
# Even, aligned but uneven, half aligned, odd, and degenerate.
SIZES = [(256, 384, 128), (200, 328, 72), (196, 300, 100), (37, 51, 29), (1, 500, 64), (3, 1, 5)]
# Largest ‖out − expected‖ / ‖expected‖ of a correct kernel.
TOLERANCE = {"bfloat16": 4e-3, "float16": 5e-4, "float32": 1e-5, "tf32": 5e-3}
HOPPER = torch.cuda.get_device_capability()[0] >= 9


@pytest.fixture(scope="module")
def library():
    properties = torch.cuda.get_device_properties(0)
    return KernelLibrary(template_source, properties.multi_processor_count)


def random_operands(problem: MMShape) -> Operands:
    device = torch.device("cuda", 0)
    tensors = operands(problem, device, torch.Generator(device).manual_seed(0))
    tensors.out.fill_(float("nan"))
    return tensors


def run(library: KernelLibrary, spec: KernelSpec, tensors: Operands) -> None:
    Launcher(library).bind(spec, tensors)()


def error_of(tensors: Operands, first_row: int = 0) -> float:
    a, out = tensors.a[..., first_row:, :], tensors.out[..., first_row:, :]
    expected = a.double() @ tensors.b.double()
    if tensors.bias is not None:
        expected += tensors.bias.double()
    return float((out.double() - expected).norm() / expected.norm())


def tolerance(problem: MMShape) -> float:
    return TOLERANCE[problem.precision]


@pytest.mark.parametrize(("dtype", "tf32"), DTYPES)
@pytest.mark.parametrize(("template", "op", "bias"), KINDS)
def test_results_are_correct_in_every_layout_and_for_all_kinds_of_sizes(
    library, template, op, bias, dtype, tf32
):
    if template == PERSISTENT_TMA and not HOPPER:
        pytest.skip("needs TMA")
    wrong, ran = {}, 0
    layouts = itertools.product((False, True), repeat=2)
    for (ta, tb), sizes, config in itertools.product(layouts, SIZES, CONFIGS):
        if template == PERSISTENT_TMA and config.num_warps == 1:
            continue  # Inductor offers no such config either
        batch = 5 if template == BMM else 1
        problem = MMShape(op, *sizes, batch, dtype, "", ta, tb, tf32, bias)
        try:
            spec = library.spec_for(problem, Candidate(template, config))
        except KernelInfeasibleError:
            continue
        tensors = random_operands(problem)
        run(library, spec, tensors)
        ran += 1
        error = error_of(tensors)
        if not error <= tolerance(problem):
            wrong[f"{problem} {config}"] = error
    assert ran >= (4 if template == PERSISTENT_TMA else 40)
    assert wrong == {}


@pytest.mark.parametrize("template", [MM, PERSISTENT_TMA])
def test_a_bound_launch_can_be_repeated(library, template):
    if template == PERSISTENT_TMA and not HOPPER:
        pytest.skip("needs TMA")
    problem = MMShape("addmm", 200, 328, 72, transpose_b=True)
    spec = library.spec_for(problem, Candidate(template, CONFIGS[1]))
    tensors = random_operands(problem)
    launch = Launcher(library).bind(spec, tensors)
    for _ in range(3):
        tensors.out.fill_(float("nan"))
        launch()
        assert error_of(tensors) <= tolerance(problem)


def test_one_kernel_runs_problems_of_many_sizes(library):
    candidate = Candidate(MM, CONFIGS[1])
    problems = [MMShape("mm", m, 8 * m, 32 * m, transpose_b=True) for m in (2, 5, 33, 64)]
    (spec,) = {library.spec_for(problem, candidate) for problem in problems}
    for problem in problems:
        tensors = random_operands(problem)
        run(library, spec, tensors)
        assert error_of(tensors) <= tolerance(problem)


def test_a_batch_larger_than_the_grid_runs_or_is_infeasible(library):
    problem = MMShape("bmm", 16, 16, 16, B=70000)
    spec = library.spec_for(problem, Candidate(BMM, CONFIGS[0]))
    tensors = random_operands(problem)
    if library.kernel_for(spec).source.splits_batch:
        run(library, spec, tensors)
        assert error_of(tensors) <= tolerance(problem)
    else:
        with pytest.raises(KernelInfeasibleError):
            run(library, spec, tensors)


def test_a_tensor_beyond_32_bit_indices_is_correct_at_its_end(library):
    m, n = 70000, 32768
    problem = MMShape("mm", m, n, 64, transpose_b=True)
    free, _ = torch.cuda.mem_get_info()
    if free < 3 * problem.bytes_moved:
        pytest.skip("needs more free memory on the GPU")
    config = TritonGEMMConfig(128, 128, 64, group_m=8, num_stages=3, num_warps=8)
    spec = library.spec_for(problem, Candidate(MM, config))
    assert spec.source.index_bits == 64
    tensors = random_operands(problem)
    run(library, spec, tensors)
    assert error_of(tensors, first_row=m - 256) <= tolerance(problem)


def test_a_config_that_does_not_fit_the_chip_is_infeasible(library):
    problem = MMShape("mm", 512, 512, 512, transpose_b=True)
    config = TritonGEMMConfig(128, 128, 128, group_m=8, num_stages=8, num_warps=8)
    kernel = library.kernel_for(library.spec_for(problem, Candidate(MM, config)))
    tensors = random_operands(problem)
    with pytest.raises(KernelInfeasibleError, match="shared memory"):
        kernel.load(tensors.a, tensors.b, tensors.out, tensors.bias)
