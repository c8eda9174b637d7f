"""Real compiles on this CPU with oneDNN chosen for every matmul that has it."""

import contextlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._inductor import config as inductor_config
from torch._inductor.utils import run_and_get_code

from torch_diode import CustomHeuristic, Hardware, MatmulDatasetCollector
from torch_diode.integration import registration
from torch_diode.integration.hooks import device_hardware, torch_compat

OPERATOR = "mkldnn._linear_pointwise"


def prefer_onednn(problem: Any, candidates: Any) -> Any:
    return [candidate for candidate in candidates if candidate.template == "onednn"] or None


RULE = CustomHeuristic(prefer_onednn)
NO_HALF_PRECISION = Hardware("amd-zen3", "cpu", "x86_64", threads=1, instruction_sets=("avx2",))


@pytest.fixture(autouse=True)
def fresh_compiler():
    torch._dynamo.reset()
    with inductor_config.patch(force_disable_caches=True):
        yield
    torch._dynamo.reset()


def compiled(function: Callable[..., Any], *inputs: Any, **options: Any) -> tuple[Any, str]:
    """The result of a compiled function and the code generated for it."""
    with registration.using(RULE):
        result, code = run_and_get_code(torch.compile(function, **options), *inputs)
    return result, "\n".join(code)


def matrix(rows: int, columns: int, transposed: bool = False) -> torch.Tensor:
    values = torch.randn(columns, rows) if transposed else torch.randn(rows, columns)
    return values.t() if transposed else values


@pytest.mark.parametrize("layout", ["nn", "nt", "tn", "tt"])
def test_a_matmul_runs_in_onednn_in_every_layout(layout):
    a, b = matrix(33, 100, layout[0] == "t"), matrix(100, 17, layout[1] == "t")
    result, code = compiled(torch.mm, a, b)
    assert OPERATOR in code
    torch.testing.assert_close(result, a @ b)


def test_a_training_step_runs_in_onednn_forward_and_backward():
    model = torch.nn.Sequential(torch.nn.Linear(64, 48), torch.nn.GELU(), torch.nn.Linear(48, 8))
    x = torch.randn(16, 64, requires_grad=True)

    def gradients(step):
        model.zero_grad()
        x.grad = None
        step(x).sum().backward()
        return [p.grad.clone() for p in (*model.parameters(), x) if p.grad is not None]

    expected = gradients(model)
    with registration.using(RULE):
        torch.testing.assert_close(gradients(torch.compile(model)), expected)
        decisions = registration.explain()
    assert len(decisions) == 6
    assert {decision.winner.candidate.template for decision in decisions} == {"onednn"}


def test_a_dynamic_number_of_rows_runs_in_onednn():
    model = torch.nn.Linear(32, 24)
    with registration.using(RULE), torch.no_grad():
        run = torch.compile(model, dynamic=True)
        for rows in (5, 64, 1000):
            x = torch.randn(rows, 32)
            torch.testing.assert_close(run(x), model(x))
        assert registration.explain()[0].winner.candidate.template == "onednn"


def test_the_cpp_wrapper_calls_the_operator_too():
    a, b = torch.randn(9, 40), torch.randn(40, 11)
    with inductor_config.patch(cpp_wrapper=True):
        result, code = compiled(torch.mm, a, b)
    assert "_linear_pointwise" in code
    torch.testing.assert_close(result, a @ b)


def batched(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.bmm(a.unsqueeze(0), b.unsqueeze(0))[0]


def halved_bias(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.addmm(a[0, : b.shape[1]], a, b, beta=0.5)


def matrix_bias(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.addmm(a[:, : b.shape[1]], a, b)


@pytest.mark.parametrize(
    ("op", "sizes", "template"),
    [
        ("mm", [(64, 128), (128, 96)], "onednn_f32"),
        ("addmm", [(96,), (64, 128), (128, 96)], "onednn_f32"),
        ("bmm", [(6, 64, 128), (6, 128, 96)], "aten_f32"),
        ("bmm", [(3, 256, 256), (3, 256, 256)], "onednn_f32"),
    ],
)
def test_a_half_precision_is_converted_to_float32(op, sizes, template):
    if op == "bmm" and template == "onednn_f32" and not torch_compat.takes_slices():
        pytest.skip("this release calls no library per matrix")
    function = getattr(torch, op)
    operands = [torch.randn(size, dtype=torch.float16) for size in sizes]
    rule = CustomHeuristic(lambda _, offered: [c for c in offered if c.template == template])
    with registration.using(rule), device_hardware.pretending(NO_HALF_PRECISION):
        result = torch.compile(function)(*operands)
        assert registration.explain()[-1].winner.candidate.template == template
    exact = function(*(operand.double() for operand in operands)).half()
    torch.testing.assert_close(result, exact, rtol=2e-3, atol=2e-3)


@pytest.mark.skipif(not torch_compat.takes_slices(), reason="no library per matrix there")
@pytest.mark.parametrize("op", ["bmm", "baddbmm"])
def test_a_batch_of_large_matrices_is_a_call_of_onednn_each(op):
    operands = [torch.randn(3, 192, 192) for _ in range(2 if op == "bmm" else 3)]
    function = getattr(torch, op)
    result, code = compiled(function, *operands)
    assert code.count(OPERATOR) >= 3
    torch.testing.assert_close(result, function(*operands))


@pytest.mark.parametrize("function", [batched, halved_bias, matrix_bias])
def test_what_the_operator_does_not_compute_stays_torchs(function):
    a, b = torch.randn(16, 32), torch.randn(32, 8)
    result, code = compiled(function, a, b)
    assert OPERATOR not in code
    torch.testing.assert_close(result, function(a, b))


@contextlib.contextmanager
def without_onednn() -> Iterator[None]:
    with torch.backends.mkldnn.flags(enabled=False):
        yield


@contextlib.contextmanager
def deterministic() -> Iterator[None]:
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


@contextlib.contextmanager
def lower_precision() -> Iterator[None]:
    torch.set_float32_matmul_precision("medium")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision("highest")


@pytest.mark.parametrize("setting", [without_onednn, deterministic, lower_precision])
def test_a_setting_that_asks_for_certain_numbers_is_respected(setting):
    a, b = torch.randn(16, 32), torch.randn(32, 8)
    with setting():
        _, code = compiled(torch.mm, a, b)
    assert OPERATOR not in code


def test_max_autotune_times_the_libraries_a_heuristic_names_and_atens():
    collector = MatmulDatasetCollector(clean=True)
    a, b = torch.randn(64, 256), torch.randn(256, 128)
    with collector:
        result, _ = compiled(torch.mm, a, b, mode="max-autotune")
    torch.testing.assert_close(result, a @ b, atol=1e-4, rtol=1e-4)
    timed = sorted(timing.candidate.template for timing in collector.dataset())
    assert timed == ["aten", "onednn"]
    (decision,) = registration.explain()
    assert (decision.mode, decision.kept) == ("max-autotune", 2)


PROGRAM = """
import sys, torch
from torch._inductor import config, metrics
from torch._dynamo.utils import counters
if sys.argv[1] == "with":
    import torch_diode
    from tests.integration.cpu.test_onednn import RULE
    torch_diode.enable(RULE)
torch.manual_seed(0)
a, b = torch.randn(16, 32), torch.randn(32, 8)
result = torch.compile(torch.mm)(a, b)
torch.testing.assert_close(result, a @ b)
print(counters["inductor"]["fxgraph_cache_hit"], counters["inductor"]["fxgraph_cache_miss"])
"""


def test_a_process_without_torch_diode_is_not_served_its_graphs(tmp_path):
    def run(how):
        environment = {
            "PATH": "/usr/bin:/bin",
            "TORCHINDUCTOR_CACHE_DIR": str(tmp_path),
            "PYTHONPATH": str(Path(__file__).parents[3]),
            "HOME": str(tmp_path),
        }
        ended = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", PROGRAM, how],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return ended.stdout.strip()

    assert [run("with"), run("with"), run("without")] == ["0 1", "1 0", "0 1"]
