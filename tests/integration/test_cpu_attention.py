"""Real compiles of scaled dot-product attention on this CPU, with the C++ kernel chosen for all."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch._inductor import config as inductor_config
from torch._inductor.utils import run_and_get_code

from torch_diode.heuristics.custom import heuristic
from torch_diode.integration import registration
from torch_diode.integration.capture.trace import tracing
from torch_diode.integration.cpu import cpp_gemm, trial
from torch_diode.integration.hooks.device_hardware import hardware_of

ATEN = "_scaled_dot_product_flash_attention_for_cpu"
KERNEL = "Vector lanes are queries"
"""In the code of the kernel."""

pytestmark = pytest.mark.skipif(
    bool(cpp_gemm.why_unavailable(hardware_of("cpu"))), reason="no C++ compiler for this CPU"
)


@heuristic("sdpa")
def always(question: Any) -> str:
    return "cpp::attention"


@heuristic("sdpa")
def never(question: Any) -> str:
    return "aten"


@pytest.fixture(autouse=True)
def fresh_compiler():
    torch._dynamo.reset()
    with inductor_config.patch(force_disable_caches=True), torch.no_grad():
        yield
    torch._dynamo.reset()


def heads(batch: int, number: int, rows: int, depth: int) -> torch.Tensor:
    """As a linear leaves them: rows before heads in memory."""
    return torch.randn(batch, rows, number, depth).transpose(1, 2)


def generated(function: Any, *inputs: Any, rule: Any = always, **options: Any) -> tuple[Any, str]:
    """The result of a compiled function and the code generated for it."""
    with registration.using(rule):
        result, code = run_and_get_code(torch.compile(function, **options), *inputs)
    return result, "\n".join(code)


MASKS = {
    "none": {},
    "causal": {"is_causal": True},
    "keys": {"attn_mask": torch.randn(2, 1, 1, 70)},
    "full": {"attn_mask": torch.randn(2, 3, 41, 70)},
    "two dimensions": {"attn_mask": torch.randn(41, 70)},
    "hides all of a query": {"attn_mask": torch.arange(41)[:, None] > torch.arange(70)},
    "scale": {"scale": 0.3},
}


@pytest.mark.parametrize("more", MASKS.values(), ids=MASKS)
def test_the_kernel_gives_atens_result(more):
    inputs = heads(2, 3, 41, 24), heads(2, 3, 70, 24), heads(2, 3, 70, 24)
    result, code = generated(lambda *given: F.scaled_dot_product_attention(*given, **more), *inputs)
    assert KERNEL in code
    expected = F.scaled_dot_product_attention(*inputs, **more)
    torch.testing.assert_close(result, expected)
    assert result.stride() == expected.stride()


def test_queries_keys_and_values_of_one_buffer_between_other_operations():
    """Keys are more than a block, the head dimension and the rows leave remainders."""
    states, weight = torch.randn(2, 301, 3 * 2 * 19), torch.randn(38, 38) / 38

    def layer(states: torch.Tensor) -> torch.Tensor:
        parts = (states * 2).view(2, 301, 3, 2, 19).permute(2, 0, 3, 1, 4)
        out = F.scaled_dot_product_attention(*parts) + 1
        return out.transpose(1, 2).reshape(2, 301, 38) @ weight

    result, code = generated(layer, states)
    assert KERNEL in code
    torch.testing.assert_close(result, layer(states))


def test_a_dynamic_number_of_rows():
    attend = F.scaled_dot_product_attention
    with registration.using(always):
        run = torch.compile(attend, dynamic=True)
        for rows in (5, 33, 200):
            inputs = heads(1, 2, rows, 16), heads(1, 2, rows + 3, 16), heads(1, 2, rows + 3, 16)
            torch.testing.assert_close(run(*inputs), attend(*inputs))
        (answered,) = registration.explain().answers
    assert answered.answer == "cpp::attention"


def test_the_cpp_wrapper_has_the_kernel_too():
    inputs = [heads(1, 2, 20, 16) for _ in range(3)]
    with inductor_config.patch(cpp_wrapper=True):
        result, code = generated(F.scaled_dot_product_attention, *inputs)
    assert KERNEL in code
    torch.testing.assert_close(result, F.scaled_dot_product_attention(*inputs))


@pytest.mark.parametrize("case", ["training", "bfloat16", "function", "deterministic"])
def test_atens_kernel_stays(case):
    """For a training step, whose backward pass reads what the kernel does not compute; for other
    dtypes; and where a function or torch's settings ask for it."""
    inputs = [heads(1, 2, 20, 16) for _ in range(3)]
    with contextlib.ExitStack() as stack:
        if case == "training":
            stack.enter_context(torch.enable_grad())
            inputs = [each.requires_grad_() for each in inputs]
        if case == "bfloat16":
            inputs = [each.bfloat16() for each in inputs]
        if case == "deterministic":
            torch.use_deterministic_algorithms(True)
            stack.callback(torch.use_deterministic_algorithms, False)
        rule = never if case == "function" else always
        result, code = generated(F.scaled_dot_product_attention, *inputs, rule=rule)
        assert KERNEL not in code
        torch.testing.assert_close(result, F.scaled_dot_product_attention(*inputs))


def test_a_kernel_that_dies_on_this_machine_is_never_compiled_into_a_graph(tmp_path, monkeypatch):
    (tmp_path / "6x32x1").write_text("6x32x1 died of SIGILL")
    (tmp_path / trial.ATTENTION).write_text("attention died of SIGILL")
    monkeypatch.setattr(trial, "_folder", lambda: tmp_path)
    inputs = [heads(1, 2, 20, 16) for _ in range(3)]
    with registration.using(always):
        before = registration.status().counters.abstentions
        _, code = run_and_get_code(torch.compile(F.scaled_dot_product_attention), *inputs)
        reasons = registration.status().counters.abstentions - before
    assert KERNEL not in "".join(code)
    assert "attention: attention died of SIGILL" in reasons


def test_an_answer_that_is_no_kernel_is_refused():
    @heuristic("sdpa")
    def wrong(question: Any) -> str:
        return "mkl"

    inputs = [heads(1, 2, 20, 16) for _ in range(3)]
    with pytest.warns(UserWarning, match="'aten', 'cpp::attention' or None"):
        _, code = generated(F.scaled_dot_product_attention, *inputs, rule=wrong)
    assert KERNEL not in code


def test_a_program_that_is_traced_runs_atens_kernel():
    inputs = [heads(1, 2, 20, 16) for _ in range(3)]
    with registration.using(always), tracing():
        _, code = run_and_get_code(torch.compile(F.scaled_dot_product_attention), *inputs)
    assert KERNEL not in "".join(code)


def test_disable_restores_torchs_lowering():
    from torch._inductor.lowering import lowerings

    operator = getattr(torch.ops.aten, ATEN).default
    own = lowerings[operator]
    with registration.using(always):
        assert lowerings[operator] is not own
    assert lowerings[operator] is own


def test_a_graph_with_the_kernel_has_a_cache_key_of_its_own():
    keys = registration._registration.cache_keys
    with registration.using(always):
        chosen = keys.fingerprint([torch.device("cpu")])
    with registration.using(never):
        assert keys.fingerprint([torch.device("cpu")]) != chosen
