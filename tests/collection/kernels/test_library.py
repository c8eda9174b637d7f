"""Kernels of a sweep: Inductor's code, compiled without a GPU, with correct results."""

import itertools
import json
import linecache
import os
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("triton")


from torch_diode import Candidate, MMShape, TritonGEMMConfig
from torch_diode.candidates import candidate_space
from torch_diode.collection.kernels.compile import compile_kernel, compiling_for, precompile
from torch_diode.collection.kernels.library import (
    BMM,
    MM,
    PERSISTENT_TMA,
    KernelLibrary,
    KernelSpec,
    SweepKernel,
    jit_function,
)
from torch_diode.collection.kernels.operands import Operands, operands
from torch_diode.collection.kernels.outcome import CompileOutcome, KernelInfeasibleError
from torch_diode.collection.kernels.source import TemplateSource, unit_of
from torch_diode.collection.workers.compile_ahead import CompileAhead
from torch_diode.hardware import known
from torch_diode.integration.capture.template_source import TEMPLATES, render, template_source

ARCH = 90
H200_SHARED_MEMORY = 232448
SMALL = TritonGEMMConfig(16, 32, 16, group_m=2, num_stages=2, num_warps=1)
RENDERED = TritonGEMMConfig(64, 64, 32, group_m=8, num_stages=2, num_warps=4)
BIASES = {"mm": ("none",), "bmm": ("none",), "addmm": ("vector", "matrix"), "baddbmm": ("matrix",)}
KINDS = [
    (template, op, bias)
    for template, ops in ((MM, ("mm", "addmm")), (BMM, ("bmm", "baddbmm")))
    for op in ops
    for bias in BIASES[op]
] + [(PERSISTENT_TMA, "mm", "none"), (PERSISTENT_TMA, "addmm", "vector")]


@pytest.fixture(scope="module")
def library():
    return KernelLibrary(template_source, num_sms=132)


@pytest.fixture(autouse=True)
def fresh_triton_cache(tmp_path, monkeypatch):
    cache = tmp_path / "triton"
    monkeypatch.setenv("TRITON_CACHE_DIR", str(cache))
    return cache


def cubins(cache: Path) -> set[Path]:
    return set(cache.rglob("*.cubin"))


def outcome_of(library: KernelLibrary, problem: MMShape, candidate: Candidate) -> CompileOutcome:
    ((source, spec),) = library.jobs([library.spec_for(problem, candidate)])
    return precompile(source, spec, ARCH)


class TestSpec:
    @pytest.mark.parametrize(
        ("size", "itemsize", "unit"),
        [(4096, 2, 8), (1000, 2, 8), (1004, 2, 4), (7, 2, 1), (1000, 4, 4), (1, 2, 0)],
    )
    def test_units_reach_16_bytes_and_no_further(self, size, itemsize, unit):
        assert unit_of(size, itemsize) == unit

    def test_problems_of_one_kind_share_a_kernel(self, library):
        shapes = [(512, 1024, 4096), (7, 4096, 1024), (40000, 8, 64)]
        specs = {
            library.spec_for(MMShape("mm", *s, transpose_b=True), Candidate(MM, RENDERED))
            for s in shapes
        }
        assert len(specs) == 1

    @pytest.mark.parametrize(
        "other",
        [
            (512, 1024, 1000),
            (512, 1001, 1024),
            (512, 1024, 32),
            (1, 1024, 1024),
            (70000, 70000, 1024),
        ],
    )
    def test_properties_that_static_kernels_fold_in_need_another_kernel(self, library, other):
        candidate = Candidate(MM, RENDERED)
        spec = library.spec_for(MMShape("mm", 512, 1024, 1024, transpose_b=True), candidate)
        assert spec != library.spec_for(MMShape("mm", *other, transpose_b=True), candidate)

    @pytest.mark.parametrize(
        ("problem", "template"),
        [
            (MMShape("mm", 64, 64, 1001), PERSISTENT_TMA),
            (MMShape("mm", 64, 65, 64), PERSISTENT_TMA),
            (MMShape("mm", 1, 64, 64), PERSISTENT_TMA),
            (MMShape("bmm", 64, 64, 64, B=2), MM),
            (MMShape("mm", 64, 64, 64, dtype="float64"), MM),
        ],
    )
    def test_a_template_that_cannot_run_a_problem_is_infeasible(self, library, problem, template):
        with pytest.raises(KernelInfeasibleError):
            library.spec_for(problem, Candidate(template, RENDERED))

    @pytest.mark.parametrize(
        ("template", "op", "k", "same"),
        [
            (MM, "mm", 32, True),
            (BMM, "bmm", 32, True),
            (MM, "mm", 40, False),
            (PERSISTENT_TMA, "mm", 32, False),
        ],
    )
    def test_stages_matter_only_with_a_loop_over_k(self, library, template, op, k, same):
        problem = MMShape(op, 512, 512, k, transpose_b=True)
        configs = [replace(RENDERED, num_stages=stages) for stages in (2, 5)]
        specs = [library.spec_for(problem, Candidate(template, config)) for config in configs]
        assert (specs[0] == specs[1]) == same
        static = {_static_ptx(template, problem, replace(specs[0], config=c)) for c in configs}
        assert (len(static) == 1) == same

    @pytest.mark.parametrize(
        ("template", "op", "batch"), [(MM, "mm", 1), (BMM, "bmm", 7), (PERSISTENT_TMA, "mm", 1)]
    )
    @pytest.mark.parametrize("sizes", [(640, 1000, 64), (8, 8, 8)])
    def test_the_grid_is_the_templates_own(self, library, template, op, batch, sizes):
        problem = MMShape(op, *sizes, B=batch)
        spec = library.spec_for(problem, Candidate(template, RENDERED))
        call_sizes = [batch] * (op == "bmm") + [problem.M, problem.N]
        expected = TEMPLATES[template].grid(*call_sizes, spec.constants)
        assert library.kernel_for(spec).grid(problem) == tuple(expected)


class TestCompile:
    @pytest.mark.parametrize(
        "config",
        [
            TritonGEMMConfig(32, 32, 64, num_stages=1, num_warps=4),
            TritonGEMMConfig(32, 64, 64, num_stages=1, num_warps=2),
        ],
    )
    def test_configs_that_spill_in_one_step_are_not_in_the_space(self, library, config):
        problem = MMShape("mm", 512, 512, config.block_k, dtype="float32", transpose_b=True)
        outcome = outcome_of(library, problem, Candidate(MM, config))
        assert outcome.error == ""
        space = set(candidate_space(problem, known("nvidia-h200")))
        assert (Candidate(MM, config) in space) == (outcome.stack_bytes == 0)

    def test_a_config_over_the_shared_memory_is_recognised(self, library):
        config = TritonGEMMConfig(128, 128, 128, num_stages=5, num_warps=8)
        problem = MMShape("mm", 512, 512, 512, transpose_b=True)
        outcome = outcome_of(library, problem, Candidate(MM, config))
        assert outcome.error == ""
        assert outcome.shared_bytes > H200_SHARED_MEMORY
        assert not outcome.fits(H200_SHARED_MEMORY)

    def test_a_compiler_error_is_part_of_the_outcome(self, library):
        problem = MMShape("mm", 512, 512, 512)
        ((source, spec),) = library.jobs([library.spec_for(problem, Candidate(MM, RENDERED))])
        broken = TemplateSource(**{**vars(source), "text": source.text.replace("tl.dot", "tl.dut")})
        outcome = precompile(broken, spec, ARCH)
        assert "dut" in outcome.error
        assert not outcome.fits(H200_SHARED_MEMORY)

    def test_a_launch_uses_kernels_compiled_by_another_process(self, library, fresh_triton_cache):
        if torch.cuda.is_initialized():
            pytest.skip("another test has used CUDA in this process, so nothing can be forked")
        problems = [
            MMShape("mm", 48, 64, 96, dtype="float32", transpose_b=True),
            MMShape("addmm", 41, 63, 97, dtype="bfloat16"),
        ]
        specs = [library.spec_for(p, Candidate(MM, SMALL)) for p in problems]
        with CompileAhead(library.jobs(specs), ARCH, processes=2) as ahead:
            outcomes = list(ahead.as_completed())
        assert [o.error for o in outcomes] == ["", ""]
        compiled = cubins(fresh_triton_cache)
        assert len(compiled) == 2
        for problem, spec in zip(problems, specs, strict=True):
            _compile_as_a_launch_would(library, problem, spec)
        assert cubins(fresh_triton_cache) == compiled


def _compile_as_a_launch_would(library: KernelLibrary, problem: MMShape, spec: KernelSpec) -> None:
    """With real tensors and sizes, up to the point where a GPU is needed."""
    kernel = library.kernel_for(spec)
    with compiling_for(ARCH):
        kernel._function.warmup(
            *_arguments(kernel, _operands(problem)),
            grid=kernel.grid(problem),
            **spec.constants,
            **spec.options,
        )


class TestFidelity:
    """The same instructions as the kernel Inductor renders for the problem's fixed sizes."""

    @pytest.mark.parametrize(
        ("template", "problem"),
        [
            (MM, MMShape("mm", 1000, 1000, 1000, transpose_b=True)),
            (MM, MMShape("mm", 40, 1003, 4096, transpose_a=True)),
            (MM, MMShape("addmm", 64, 1, 64)),
            (MM, MMShape("mm", 1, 4096, 4096, transpose_b=True)),
            (BMM, MMShape("bmm", 33, 1004, 64, B=4)),
            (PERSISTENT_TMA, MMShape("mm", 512, 1024, 768, transpose_a=True)),
            # K no longer than a block: no loop, and nothing to pipeline.
            (MM, MMShape("mm", 1000, 1000, 32, transpose_b=True)),
            (MM, MMShape("addmm", 1000, 1000, 24)),
            (BMM, MMShape("bmm", 128, 128, 32, B=4, transpose_b=True)),
            (BMM, MMShape("baddbmm", 128, 128, 24, B=4)),
            (PERSISTENT_TMA, MMShape("mm", 512, 1024, 32, transpose_b=True)),
            (PERSISTENT_TMA, MMShape("mm", 512, 1024, 24, transpose_b=True)),
        ],
        ids=str,
    )
    def test_instructions_and_shared_memory_equal_the_static_kernels(self, template, problem):
        library = KernelLibrary(template_source, num_sms=1)
        ((source, spec),) = library.jobs([library.spec_for(problem, Candidate(template, RENDERED))])
        ours = compile_kernel(source, spec, ARCH)
        static = _static_kernel(template, problem, spec)
        assert _instructions(ours) == _instructions(static)
        assert ours.metadata.shared == static.metadata.shared


def _static_kernel(template: str, problem: MMShape, spec: KernelSpec) -> Any:
    sizes = (problem.M, problem.N, problem.K, problem.B)
    text = render(TEMPLATES[template], spec.source, sizes)
    filename = f"<static {template} {problem}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    namespace: dict[str, Any] = {"__name__": "static"}
    exec(compile(text, filename, "exec"), namespace)
    function = namespace[f"triton_{TEMPLATES[template].name}"]
    dtype = getattr(torch, problem.dtype)
    with compiling_for(ARCH):
        return function.warmup(*[dtype] * len(function.arg_names), grid=(1,), **spec.options)


def _static_ptx(template: str, problem: MMShape, spec: KernelSpec) -> str:
    return re.sub(r"//.*", "", _static_kernel(template, problem, spec).asm["ptx"])


def _instructions(compiled: Any) -> Counter[str]:
    """Loads, stores, copies and matrix instructions, by kind and width."""
    kinds = r"(?:ld\.global|st\.global|cp\.async|wgmma\.mma_async|mma\.sync)[\w.:]*"
    return Counter(re.findall(kinds, compiled.asm["ptx"]))


NUMERIC_SIZES = [(19, 35, 21), (17, 40, 32), (1, 7, 5), (16, 1, 1)]
NUMERIC_LAYOUTS = [(False, True), (True, False)]
NUMERIC_KINDS = [kind for kind in KINDS if kind[0] != PERSISTENT_TMA]
# Seen on triton 3.9: a mask made with a scalar comparison, which torch 2.13's bmm template has.
INTERPRETER_FAULT = "mask has unsupported dtype"


def _operands(problem: MMShape) -> Operands:
    tensors = operands(problem, torch.device("cpu"), torch.Generator().manual_seed(0))
    tensors.out.fill_(float("nan"))
    return tensors


def _arguments(kernel: SweepKernel, tensors: Operands) -> tuple[Any, ...]:
    return kernel.arguments(tensors.problem, tensors.a, tensors.b, tensors.out, tensors.bias)


def run_in_interpreter() -> None:
    """Print the error of every numeric case, on CPU tensors; needs TRITON_INTERPRET=1."""
    from triton.runtime.errors import InterpreterError

    library = KernelLibrary(template_source, num_sms=3)
    for template, op, bias in NUMERIC_KINDS:
        for sizes, (a, b) in itertools.product(NUMERIC_SIZES, NUMERIC_LAYOUTS):
            batch = 3 if template == BMM else 1
            problem = MMShape(
                op, *sizes, B=batch, dtype="float32", transpose_a=a, transpose_b=b, bias=bias
            )
            spec = library.spec_for(problem, Candidate(template, SMALL))
            tensors = _operands(problem)
            try:
                _interpret(library.kernel_for(spec), tensors)
                result: Any = _relative_error(tensors)
            except InterpreterError as error:
                result = str(error)
            print(json.dumps({"kind": [op, bias], "problem": str(problem), "result": result}))


def _interpret(kernel: SweepKernel, tensors: Operands) -> None:
    run = jit_function(kernel.source)[kernel.grid(tensors.problem)]
    run(*_arguments(kernel, tensors), **kernel.spec.constants, **kernel.spec.options)


def _relative_error(tensors: Operands) -> float:
    expected = tensors.a.double() @ tensors.b.double()
    if tensors.bias is not None:
        expected += tensors.bias.double()
    error = (tensors.out.double() - expected).abs().max() / expected.abs().max()
    return float(error.nan_to_num(9e9))


@pytest.fixture(scope="module")
def interpreted():
    if torch.cuda.is_available():
        pytest.skip("tests/gpu checks the numbers on the device")
    code = (
        "from tests.collection.kernels.test_library import run_in_interpreter; run_in_interpreter()"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env={**os.environ, "TRITON_INTERPRET": "1"},
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


@pytest.mark.parametrize(("op", "bias"), [kind[1:] for kind in NUMERIC_KINDS])
def test_results_are_correct_for_odd_shapes_in_both_layouts(interpreted, op, bias):
    results = {c["problem"]: c["result"] for c in interpreted if c["kind"] == [op, bias]}
    assert len(results) == len(NUMERIC_SIZES) * len(NUMERIC_LAYOUTS)
    if all(INTERPRETER_FAULT in str(result) for result in results.values()):
        pytest.skip("this Triton's interpreter cannot run torch's template")
    assert {p: r for p, r in results.items() if not isinstance(r, float) or r > 1e-5} == {}
