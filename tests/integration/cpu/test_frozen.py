"""Real compiles of frozen models, with one candidate chosen for every linear that has it."""

import contextlib
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch._dynamo.utils import counters
from torch._inductor import config as inductor_config
from torch._inductor import freezing
from torch._inductor.utils import run_and_get_code

from tests.integration.cpu.test_onednn import deterministic, lower_precision, without_onednn
from tests.integration.forced import abstaining
from torch_diode import CustomHeuristic, Heuristic
from torch_diode.integration import registration
from torch_diode.integration.cpu import trial
from torch_diode.integration.hooks.torch_compat import linear_patterns

MARKS = {
    "aten": "extern_kernels.",
    "onednn": "mkldnn._linear_pointwise",
    "onednn_packed": "mkldnn._linear_pointwise",
    "mkl_packed": "mkl._mkl_linear",
    "cpp::gemm": "micro_gemm<",
}
"""Text in the generated code by which a candidate is known."""


class Prefer(CustomHeuristic):
    """A template first, where it is on offer; it abstains elsewhere."""

    def __init__(self, template: str) -> None:
        super().__init__(self._choose)
        self.template = template

    def _choose(self, problem: Any, candidates: Any) -> Any:
        return [c for c in candidates if c.template == self.template] or None

    def fingerprint(self) -> str:
        return self.template


@pytest.fixture(autouse=True)
def frozen():
    torch._dynamo.reset()
    torch.manual_seed(0)
    patch = inductor_config.patch(force_disable_caches=True, freezing=True)
    with patch, torch.no_grad():
        yield
    torch._dynamo.reset()


def compiled(
    model: Callable[..., Any], *inputs: Any, heuristic: Heuristic | None = None, **options: Any
) -> tuple[Any, str]:
    """The result of a compiled model, and the code generated for it."""
    with contextlib.ExitStack() as stack:
        if heuristic is not None:
            stack.enter_context(registration.using(heuristic))
        result, code = run_and_get_code(torch.compile(model, **options), *inputs)
    return result, "\n".join(code)


def winners() -> list[str]:
    return [decision.winner.candidate.template for decision in registration.explain()]


def two_linears(dtype: torch.dtype = torch.float32) -> nn.Module:
    """With a bias, then GELU, then without a bias."""
    linears = nn.Linear(64, 72), nn.GELU(), nn.Linear(72, 40, bias=False)
    return nn.Sequential(*linears).eval().to(dtype)


@pytest.mark.parametrize("template", MARKS)
def test_both_linears_run_where_the_heuristic_says(template):
    model, x = two_linears(), torch.randn(2, 5, 64)
    result, code = compiled(model, x, heuristic=Prefer(template))
    torch.testing.assert_close(result, model(x))
    present = {mark for mark in MARKS.values() if mark in code}
    assert present == {MARKS[template]}
    assert winners() == [template, template]
    packs = template in ("onednn_packed", "mkl_packed")
    assert ("_frozen_param" in code) or packs
    if template == "onednn_packed":  # GELU becomes a part of it
        assert "'gelu'" in code
        assert "cpp_fused" not in code
    if template == "cpp::gemm":  # what follows is fused into the kernel
        assert code.count("async_compile.cpp_pybinding(") == 2
    assert {decision.mode for decision in registration.explain()} == {"plain, frozen"}


def test_max_autotune_times_what_the_heuristic_names_and_nothing_after_that():
    def every(problem: Any, candidates: Any) -> Any:
        return sorted(candidates, key=lambda c: c.template != "cpp::gemm")

    model, x = two_linears(), torch.randn(2, 5, 64)
    with registration.using(CustomHeuristic(every), top=3):
        # The last code is the model's; before it come the kernels built to be timed.
        result, (*_, code) = run_and_get_code(torch.compile(model, mode="max-autotune"), x)
    torch.testing.assert_close(result, model(x))
    decisions = registration.explain()
    assert {decision.mode for decision in decisions} == {"max-autotune, frozen"}
    assert all(decision.kept > 2 for decision in decisions)
    chosen = {MARKS[name] for name in winners()}
    present = {mark for mark in MARKS.values() if mark in code}
    # A linear left to ATen is lowered as an addmm, for which torch 2.9 asks its template again.
    assert present == chosen or "aten" in winners()


def surroundings(m: nn.Module, x: torch.Tensor) -> dict[str, torch.Tensor]:
    y, strided = m(x + 1), m(x.transpose(0, 1)) + m(x[:, ::2]).sum()
    return {
        "residual": torch.relu(m(x)) + x,
        "heads": m(x * 2).view(2, 5, 4, 16).transpose(1, 2),
        "normalised": torch.softmax(m(x - 1) + 1, -1),
        "used twice": torch.stack([torch.tanh(y), y + y.sum(0)]),
        "tied": m(m(x / 2)),
        "strided": strided,
    }


class Around(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.linear, self.function = nn.Linear(64, 64), function

    def forward(self, x: torch.Tensor) -> Any:
        return self.function(self.linear, x)


@pytest.mark.parametrize("template", ["onednn_packed", "cpp::gemm"])
def test_results_are_right_in_any_surroundings(template):
    model, x = Around(surroundings).eval(), torch.randn(2, 5, 64)
    result, code = compiled(model, x, heuristic=Prefer(template))
    torch.testing.assert_close(result, model(x))
    assert MARKS[template] in code
    assert "mkl._mkl_linear" not in code


@pytest.mark.parametrize("template", MARKS)
def test_the_cpp_wrapper_has_them_too(template):
    model, x = two_linears(), torch.randn(10, 64)
    with inductor_config.patch(cpp_wrapper=True):
        result, _ = compiled(model, x, heuristic=Prefer(template))
    torch.testing.assert_close(result, model(x))
    assert winners() == [template, template]


@pytest.mark.parametrize("template", ["aten", "onednn", "onednn_packed"])
def test_sixteen_bit_linears_choose_among_what_torch_can_run(template):
    if not torch.ops.mkldnn._is_mkldnn_bf16_supported():
        pytest.skip("oneDNN has no bfloat16 kernels for this CPU")
    model, x = two_linears(torch.bfloat16), torch.randn(10, 64).bfloat16()
    result, code = compiled(model, x, heuristic=Prefer(template))
    torch.testing.assert_close(result, model(x), rtol=2e-2, atol=2e-2)
    assert MARKS[template] in code
    assert winners() == [template, template]


def test_float64_linears_are_torchs():
    model, x = two_linears(torch.float64), torch.randn(10, 64).double()
    result, _ = compiled(model, x, heuristic=Prefer("onednn_packed"))
    torch.testing.assert_close(result, model(x))
    assert winners() == []


@pytest.mark.parametrize("template", ["aten", "onednn", "onednn_packed"])
def test_a_dynamic_batch_is_decided_on_its_hint(template):
    model = two_linears()
    with registration.using(Prefer(template)):
        run = torch.compile(model, dynamic=True)
        for rows in (5, 64, 1000):
            x = torch.randn(rows, 64)
            torch.testing.assert_close(run(x), model(x))
        assert winners() == [template, template]


@pytest.mark.parametrize("template", ["mkl_packed", "cpp::gemm"])
def test_a_dynamic_batch_has_no_candidate_for_one_number_of_rows(template):
    model, x = two_linears(), torch.randn(5, 64)
    result, code = compiled(model, x, heuristic=Prefer(template), dynamic=True)
    torch.testing.assert_close(result, model(x))
    assert MARKS[template] not in code
    assert winners() == []


def half_bias(m: nn.Linear, x: torch.Tensor) -> torch.Tensor:
    return torch.addmm(m.bias, x[0], m.weight.t(), beta=0.5)


def unread_bias(m: nn.Linear, x: torch.Tensor) -> torch.Tensor:
    return torch.addmm(m.bias, x[0], m.weight.t(), beta=0)


@pytest.mark.parametrize("template", ["onednn_packed", "cpp::gemm"])
@pytest.mark.parametrize("around", [half_bias, unread_bias])
def test_a_scaled_bias_is_torchs(around, template):
    model, x = Around(around).eval(), torch.randn(2, 5, 64)
    result, _ = compiled(model, x, heuristic=Prefer(template))
    torch.testing.assert_close(result, model(x))
    assert winners() == []


def plain_code() -> str:
    """The code for the two linears, without the addresses, paths and number of one compile."""
    torch._dynamo.reset()
    code = compiled(two_linears(), torch.randn(10, 64))[1]
    return re.sub(r"\b[0-9a-f]{12}\b|/\S+|\d+_inference", "", code)


def test_without_a_heuristic_a_frozen_compile_is_torchs():
    alone = plain_code()
    registration.enable()
    assert plain_code() == alone
    registration.enable(abstaining())
    assert plain_code() == alone
    assert winners() == []


def test_observing_records_decisions_and_changes_nothing():
    alone = plain_code()
    registration.enable(Prefer("onednn_packed"), "observe")
    assert plain_code() == alone
    assert winners() == ["onednn_packed", "onednn_packed"]


def test_disabling_restores_freezing():
    own = freezing.freezing_passes
    handlers = [entry.handler for entry in linear_patterns()]
    registration.enable(Prefer("onednn_packed"))
    assert freezing.freezing_passes is not own
    plain_code()
    registration.disable()
    assert freezing.freezing_passes is own
    assert [entry.handler for entry in linear_patterns()] == handlers
    assert MARKS["mkl_packed"] in plain_code()


@pytest.mark.parametrize("setting", [without_onednn, deterministic, lower_precision])
def test_what_asks_for_certain_numbers_is_respected(setting):
    with setting():
        alone = plain_code()
        for template in ("onednn_packed", "cpp::gemm"):
            registration.enable(Prefer(template))
            assert plain_code() == alone
    assert winners() == []


def test_a_package_for_another_process_is_torchs(tmp_path):
    model, x = two_linears(), torch.randn(10, 64)
    exported = torch.export.export(model, (x,))
    with registration.using(Prefer("cpp::gemm")):
        path = torch._inductor.aoti_compile_and_package(
            exported, package_path=str(tmp_path / "model.pt2")
        )
        assert winners() == []
    torch.testing.assert_close(torch._inductor.aoti_load_package(path)(x), model(x))


def test_a_failing_heuristic_leaves_the_linears_to_torch():
    def fails(problem, candidates):
        raise RuntimeError("broken rule")

    alone = plain_code()
    registration.enable(CustomHeuristic(fails))
    with pytest.warns(UserWarning, match="broken rule"):
        assert plain_code() == alone


def test_weights_are_never_served_to_another_model():
    """Torch's graph cache knows frozen weights by their sizes alone."""
    x = torch.randn(10, 64)
    for template in ("aten", "onednn", "onednn_packed", "cpp::gemm"):
        with inductor_config.patch(force_disable_caches=False):
            for _ in range(2):
                torch._dynamo.reset()
                model = two_linears()
                result, _ = compiled(model, x, heuristic=Prefer(template))
                torch.testing.assert_close(result, model(x))


def test_a_graph_without_packed_weights_is_still_cached():
    x = torch.randn(11, 64)
    with inductor_config.patch(force_disable_caches=False):
        for _ in range(2):
            torch._dynamo.reset()
            counters.clear()
            compiled(two_linears(), x, heuristic=Prefer("onednn"))
    assert counters["inductor"]["fxgraph_cache_hit"] == 1


@pytest.fixture
def untried(tmp_path, monkeypatch):
    """No micro-kernel has run on this machine yet."""
    monkeypatch.setattr(trial, "_folder", lambda: tmp_path)
    monkeypatch.setattr(trial, "_failed", [])


@pytest.mark.usefixtures("untried")
def test_where_a_micro_kernel_dies_the_next_library_runs(monkeypatch):
    monkeypatch.setattr(trial, "_CODE", "import os, signal; os.kill(os.getpid(), signal.SIGILL)")
    order = {"cpp::gemm": 0, "onednn_packed": 1}

    def rule(problem, candidates):
        return sorted(candidates, key=lambda c: order.get(c.template, 2))

    model, x = two_linears(), torch.randn(10, 64)
    with registration.using(CustomHeuristic(rule)):
        result, _ = compiled(model, x)
        status = str(registration.status())
    torch.testing.assert_close(result, model(x))
    assert winners() == ["onednn_packed", "onednn_packed"]
    assert "died of SIGILL" in status


PROGRAM = """
import sys
import torch
import torch_diode

def rule(problem, candidates):
    return [c for c in candidates if c.template == "onednn_packed"]

torch_diode.enable(torch_diode.CustomHeuristic(rule))
assert "torch._inductor.freezing" not in sys.modules
model, x = torch.nn.Linear(64, 48).eval(), torch.randn(10, 64)
compiled = torch.compile(model)
torch._inductor.config.freezing = True
with torch.no_grad():
    torch.testing.assert_close(compiled(x), model(x))
print(*(decision.winner for decision in torch_diode.explain()))
"""


def test_registering_before_torch_imports_freezing_works(tmp_path):
    root = str(Path(__file__).parents[3])
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": root, "HOME": str(tmp_path)}
    environment["TORCHINDUCTOR_CACHE_DIR"] = str(tmp_path)
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout.strip() == "onednn_packed"
