"""Decisions beyond matmul, by functions: the code Inductor generates follows the answers."""

from __future__ import annotations

import inspect
import threading
import warnings
from typing import Any, cast

import pytest
import sympy
import torch
from torch._higher_order_ops.flex_attention import flex_attention
from torch._inductor.choices import InductorChoices
from torch._inductor.graph import GraphLowering
from torch._inductor.utils import run_and_get_code
from torch._inductor.virtualized import V
from torch.nn.attention.flex_attention import BlockMask, noop_mask

from tests.integration.cases import CONFIG, inputs
from tests.integration.forced import Forced
from torch_diode.heuristics.custom import CustomAnswer, heuristic
from torch_diode.heuristics.questions import (
    AttentionForward,
    Convolution,
    CooperativeReduction,
    Fusion,
    PersistentReduction,
    ReductionSplit,
)
from torch_diode.integration import registration
from torch_diode.integration.capture.fake_gpu import Input, lower
from torch_diode.integration.hooks import torch_compat
from torch_diode.integration.hooks.fallback import DiodeWarning
from torch_diode.types.errors import InvalidValueError

ROWS = [Input((1024, 512), torch.float32)]
NO_DRIVER = torch.backends.cuda.is_built() and not torch.cuda.is_available()
LOOP = "for(int64_t x0="
FLAT = [Input((1 << 22,), torch.float32)]


def total(x: torch.Tensor) -> torch.Tensor:
    return x.sum(-1)


@heuristic("fusion")
def keep_apart(question: Any) -> bool | None:
    return False if question.asks == "fuse" else None


def answering(asks: str, answer: Any, decision: str = "reduction") -> CustomAnswer:
    """A function with one answer to one question."""
    return CustomAnswer(decision, lambda question: answer if question.asks == asks else None)


def source(function: Any, given: list[Input], *answers: CustomAnswer) -> str:
    with registration.using(answers):
        return lower(function, given).source


def compiled_for_cpu(function: Any, *given: torch.Tensor) -> str:
    """The code of a compile on the CPU, whose results are right."""
    torch._dynamo.reset()
    with torch._inductor.config.patch(force_disable_caches=True):
        result, (code,) = run_and_get_code(torch.compile(function), *given)
    torch.testing.assert_close(result, function(*given))
    return str(code)


def normalised(x: torch.Tensor) -> torch.Tensor:
    exp = x.exp()
    return exp / exp.sum(-1, keepdim=True)


def test_a_function_that_hangs_leaves_the_decision_to_torch_and_is_not_called_again() -> None:
    calls = []

    @heuristic("fusion")
    def hangs(question: Any) -> None:
        calls.append(question)
        threading.Event().wait()

    hangs.seconds = 0.01
    x = torch.randn(64, 96)
    plain = compiled_for_cpu(normalised, x)
    with (
        pytest.warns(DiodeWarning, match=r"hangs: took longer than 0\.01 s; it is not called"),
        registration.using(hangs),
    ):
        assert compiled_for_cpu(normalised, x).count(LOOP) == plain.count(LOOP)
    assert len(calls) == 1


def test_a_fusion_that_is_refused_splits_a_cpus_kernel_and_results_stay_right() -> None:
    x = torch.randn(64, 96)
    plain = compiled_for_cpu(normalised, x)
    with registration.using(keep_apart):
        apart = compiled_for_cpu(normalised, x)
        answers = registration.explain().answers
    assert (plain.count(LOOP), apart.count(LOOP)) == (2, 3)
    first = answers[0]
    assert (first.source, first.answer, first.question.default) == ("keep_apart", False, True)
    assert isinstance(first.question, Fusion)
    assert first.question.hardware.kind == "cpu"
    assert (first.question.first.kind, first.question.second.kind) == ("pointwise", "reduction")
    assert first.question.second.ops == ("sum",)
    assert (first.question.second.outputs, first.question.second.length) == (64, 96)
    assert "keep_apart" in str(registration.explain())


@pytest.mark.usefixtures("fake_h200")
@pytest.mark.parametrize("pair", [("cos", "tan"), ("sin", "tan"), ("cos", "sin")])
def test_priorities_say_which_of_fusions_that_exclude_one_another_comes_first(
    pair: tuple[str, str],
) -> None:
    def three(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.sin(), x.cos(), x.tan()

    def preferring(question: Any) -> int | None:
        if question.asks != "priority":
            return None
        return int({*question.first.ops, *question.second.ops} == set(pair))

    with registration.using(CustomAnswer("fusion", preferring)):
        kernels = lower(three, ROWS, {"max_fusion_size": 2}).source.split("async_compile.triton(")
    fused = [[op for op in ("cos", "sin", "tan") if f".{op}(" in text] for text in kernels]
    assert list(pair) in fused


def many_parts(question: Any) -> int | None:
    return 4096 if question.asks == "split" and question.outputs == 1 else None


@pytest.mark.usefixtures("fake_h200")
def test_reductions_follow_the_answers_in_triton_code() -> None:
    plain, plain_flat = lower(total, ROWS).source, lower(total, FLAT).source
    assert "persistent_reduction" in plain
    looped = source(total, ROWS, answering("persistent", False))
    assert "persistent_reduction" not in looped
    cooperative = source(total, ROWS, answering("cooperative", True))
    assert "cooperative_reduction" in cooperative
    assert "cooperative_reduction" not in plain
    whole = source(total, FLAT, answering("split", 1))
    parts = source(total, FLAT, CustomAnswer("reduction", many_parts))
    assert [text.count("async_compile.triton(") for text in (plain_flat, whole, parts)] == [2, 1, 2]
    assert "empty_strided_cuda((4096, )" in parts
    assert "empty_strided_cuda((4096, )" not in plain_flat
    asked = {type(each.question) for each in registration.explain().answers}
    assert asked == {PersistentReduction, CooperativeReduction, ReductionSplit}
    assert lower(total, ROWS).source == plain


@pytest.mark.usefixtures("fake_h200")
def test_the_first_function_that_does_not_abstain_answers() -> None:
    other, no, yes = (
        answering("split", 1),
        answering("persistent", False),
        answering("persistent", True),
    )
    assert "persistent_reduction" not in source(total, ROWS, other, no, yes)
    assert "persistent_reduction" in source(total, ROWS, other, yes, no)


@pytest.mark.skipif(NO_DRIVER, reason="a CUDA build asks the driver when it traces a convolution")
@pytest.mark.usefixtures("fake_h200")
def test_convolutions_get_the_configs_that_are_answered(benchmarked: list[Any]) -> None:
    def small(question: Any) -> list[Any] | None:
        return [question.default[0].changed(BLOCK_M=32, num_warps=2), question.default[1]]

    def convolution(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return torch.conv2d(x, w, padding=1)

    config = {
        "max_autotune": True,
        "max_autotune_conv_backends": "ATEN,TRITON",
        "layout_optimization": False,
    }
    with registration.using(CustomAnswer("convolution", small)):
        lower(convolution, [Input((8, 64, 56, 56)), Input((128, 64, 3, 3))], config)
    (choices,) = benchmarked
    assert len(choices) == 3
    assert "BLOCK_M=32" in choices[1].description
    assert "num_warps=2" in choices[1].description
    (answer,) = registration.explain().answers
    question = answer.question
    assert isinstance(question, Convolution)
    assert (question.rows, question.output_channels, question.input_channels) == (25088, 128, 64)
    assert len(question.default) > 2


def forward_configs(head_dim: int) -> list[Any]:
    """The configs Inductor's lowering of flex attention gets from its handler."""
    release_says = inspect.signature(InductorChoices.get_flex_attention_fwd_configs).parameters
    length = [sympy.Integer(4096)] if "seq_len" in release_says else []
    hook: Any = V.choices.get_flex_attention_fwd_configs
    with V.set_graph_handler(GraphLowering(torch.fx.symbolic_trace(torch.nn.Identity()))):
        return list(hook(head_dim, *length, torch.bfloat16, "cuda"))


@heuristic("attention")
def frugal(question: Any) -> list[Any] | None:
    """Half the rows where a head is wide."""
    if question.asks == "forward" and question.head_dim > 128:
        return [question.default[0].changed(block_m=64, num_stages=2)]
    return None


@heuristic("attention")
def tiny(question: Any) -> Any:
    """Fewer queries per block than any release takes by itself."""
    return [question.default[0].changed(block_m=16)]


@pytest.mark.usefixtures("fake_h200")
def test_flex_attention_gets_the_configs_that_are_answered() -> None:
    narrow, wide = forward_configs(128), forward_configs(256)
    with registration.using(frugal):
        assert forward_configs(128) == narrow
        (changed,) = forward_configs(256)
    own = wide[0]
    assert type(changed) is type(own)
    assert (changed.block_m, changed.num_stages) == (64, 2) != (own.block_m, own.num_stages)
    assert (changed.block_n, changed.num_warps) == (own.block_n, own.num_warps)
    question = registration.explain().answers[0].question
    assert isinstance(question, AttentionForward)
    assert (question.dtype, question.hardware.name) == ("bfloat16", "nvidia-h200")


def flex(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, n: Any, i: Any) -> torch.Tensor:
    mask = BlockMask.from_kv_blocks(
        n, i, BLOCK_SIZE=1 << 30, mask_mod=noop_mask, compute_q_blocks=False
    )
    options: Any = {"BACKEND": "TRITON"}
    result = flex_attention(q, k, v, lambda score, *_: score, mask.as_tuple(), 0.125, options)
    return cast("torch.Tensor", result[0])


@pytest.mark.skipif(
    not torch.backends.cuda.is_built() or torch_compat.torch_release() == "2.9.1",
    reason="flex attention is lowered for CUDA by CUDA builds only, and not on 2.9",
)
@pytest.mark.usefixtures("fake_h200")
def test_flex_attention_is_compiled_with_the_config_that_is_answered() -> None:
    heads = [Input((2, 8, 1024, 256))] * 3
    given = [*heads, Input((1, 1, 1), torch.int32), Input((1, 1, 1, 1), torch.int32)]
    plain = lower(flex, given).source
    changed = source(flex, given, tiny)
    assert "BLOCK_M : tl.constexpr = 16" not in plain
    assert "BLOCK_M : tl.constexpr = 16" in changed


@pytest.mark.usefixtures("fake_h200")
@pytest.mark.parametrize("wrong", [3, "yes", 1 / 3, [True]])
def test_nonsense_and_errors_leave_torchs_own_answer_with_one_warning(wrong: Any) -> None:
    plain = lower(total, ROWS).source
    nonsense = answering("persistent", wrong)
    with pytest.warns(DiodeWarning, match="persistent: got .*; expected True, False"):
        assert source(total, ROWS, nonsense) == plain
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert source(total, ROWS, nonsense) == plain
    assert registration.status().counters.fallbacks.total() == 2


@pytest.mark.usefixtures("fake_h200")
def test_a_function_that_raises_leaves_torchs_own_answer() -> None:
    plain = lower(total, ROWS).source
    with pytest.warns(DiodeWarning, match="ZeroDivisionError"):
        assert source(total, ROWS, CustomAnswer("reduction", lambda question: 1 // 0)) == plain


@pytest.mark.usefixtures("fake_h200")
def test_rows_too_long_for_registers_are_never_kept_there() -> None:
    given = [Input((1024, 1 << 16), torch.float32)]
    plain = lower(total, given).source
    with pytest.warns(DiodeWarning, match="got True; expected False or None for rows above 16384"):
        assert source(total, given, answering("persistent", True)) == plain


@pytest.mark.usefixtures("fake_h200")
def test_functions_stand_beside_a_matmul_heuristic_and_only_where_given() -> None:
    registration.enable(Forced(CONFIG))
    assert not hasattr(V.choices, "_ask")
    own = type(V.choices).can_fuse
    registration.enable([Forced(CONFIG), keep_apart])
    assert lower(torch.mm, inputs("mm")).kernels == ["triton_tem_fused_0"]
    assert type(V.choices).can_fuse is not own
    persistent = type(V.choices).should_use_persistent_reduction
    assert persistent.__module__ == "torch._inductor.choices"
    outcomes = {step.name: step for step in registration.status().steps}
    assert outcomes["answers"].detail.startswith("keep_apart (fusion): answers can_fuse, ")
    registration.enable(Forced(CONFIG))
    assert type(V.choices).can_fuse is own
    assert "answers" not in {step.name for step in registration.status().steps}


@pytest.mark.usefixtures("fake_h200")
def test_observing_records_answers_and_changes_nothing() -> None:
    plain = lower(total, ROWS).source
    with registration.using(answering("persistent", False), "observe"):
        assert lower(total, ROWS).source == plain
        assert registration._registration.cache_keys.fingerprint([]) == ""
    assert registration.explain().answers[0].answer is False


@pytest.mark.usefixtures("fake_h200")
def test_nothing_is_asked_where_results_must_not_depend_on_the_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch_compat, "batch_invariant", lambda: True)
    assert "persistent_reduction" in source(total, ROWS, answering("persistent", False))


def test_the_cache_key_follows_the_functions_and_their_order() -> None:
    def key(*answers: CustomAnswer) -> str:
        with registration.using(answers):
            return registration._registration.cache_keys.fingerprint([])

    one, two = keep_apart, CustomAnswer("fusion", lambda question: True, "keep_apart")
    reduction = CustomAnswer("reduction", keep_apart.fn)
    keys = [key(one), key(two), key(one, two), key(two, one), key(reduction)]
    assert len(set(keys)) == len(keys)
    assert all(keys)
    assert key(one) == keys[0]
    assert registration._registration.cache_keys.fingerprint([]) == ""


def test_a_decision_nobody_asks_about_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="got 'coffee'; expected one of matmul, reduction"):
        heuristic("coffee")
    with pytest.raises(InvalidValueError, match="CustomAnswer: got 3; expected a function"):
        heuristic("fusion")(3)
