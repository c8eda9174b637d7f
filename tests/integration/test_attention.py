"""Flex attention gets configs that fit the chip, at the shapes users reported as crashing."""

from __future__ import annotations

import contextlib
import inspect
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import sympy
import torch
from torch._inductor import config as inductor_config
from torch._inductor.choices import InductorChoices
from torch._inductor.graph import GraphLowering
from torch._inductor.virtualized import V

from torch_diode.candidates.gpu.attention import fits_chip, measured_attention
from torch_diode.hardware import known
from torch_diode.heuristics.attention_table import AttentionTable
from torch_diode.heuristics.custom import CustomAnswer, heuristic
from torch_diode.heuristics.questions import Attention
from torch_diode.integration import registration
from torch_diode.integration.capture.attention import (
    attention,
    attention_inputs,
    compiled_attention,
    lowered_here,
)
from torch_diode.integration.capture.fake_gpu import Input, lower, pretend
from torch_diode.integration.hooks import torch_compat
from torch_diode.types.candidate import KernelConfig

RTX_3090, RTX_4090, RTX_5090 = (f"nvidia-geforce-rtx-{name}" for name in (3090, 4090, 5090))
REPORTED = [
    (RTX_3090, "forward", 192),
    (RTX_4090, "forward", 256),
    (RTX_4090, "backward", 256),
    (RTX_3090, "backward", 256),
    (RTX_5090, "backward", 192),
    (RTX_5090, "backward", 256),
]
"""Where users' compiles fail for want of shared memory, in the releases to date."""
HOOKS = {
    "forward": "get_flex_attention_fwd_configs",
    "backward": "get_flex_attention_bwd_configs",
    "decode": "get_flex_decode_configs",
}


@contextlib.contextmanager
def lowering_for(chip: str) -> Iterator[None]:
    """Inductor lowers for this chip."""
    with pretend(known(chip)), V.set_graph_handler(_graph()):
        yield


def _graph() -> GraphLowering:
    return GraphLowering(torch.fx.symbolic_trace(torch.nn.Identity()))


def configs(kind: str, head_dim: int, dtype: torch.dtype = torch.bfloat16) -> list[KernelConfig]:
    """The configs that Inductor's lowering of flex attention gets from its handler."""
    length = inspect.signature(getattr(InductorChoices, HOOKS[kind])).parameters.get("seq_len")
    queries = [sympy.Integer(4096)] if length is not None else []
    given = getattr(V.choices, HOOKS[kind])(head_dim, *queries, dtype, "cuda")
    return [_config(each) for each in given]


def _config(own: Any) -> KernelConfig:
    values = vars(own)
    blocks = tuple((name, size) for name, size in values.items() if name.startswith("block"))
    return KernelConfig(blocks, own.num_stages, own.num_warps)


def launchable(chip: str, kind: str, head_dim: int, config: KernelConfig) -> bool | None:
    """True if a kernel of this config fits the chip; None if it was never compiled."""
    hardware = known(chip)
    row = measured_attention(kind, "bfloat16", hardware, head_dim).get(config)
    return None if row is None else fits_chip(row, hardware)


@pytest.mark.parametrize(("chip", "kind", "head_dim"), REPORTED)
def test_what_does_not_fit_is_replaced_by_the_nearest_that_does(
    chip: str, kind: str, head_dim: int
) -> None:
    with lowering_for(chip):
        (own,) = configs(kind, head_dim)
        if launchable(chip, kind, head_dim, own) is not False:
            pytest.skip("this release of torch has another config")
        registration.enable()
        (given,) = configs(kind, head_dim)
        (answer,) = registration.explain().answers
        registration.disable()
        assert configs(kind, head_dim) == [own]
    assert launchable(chip, kind, head_dim, given)
    assert given.is_within(own)
    assert (answer.source, answer.answer) == ("what fits", (given,))
    assert "what fits" in str(answer)


@pytest.mark.parametrize("kind", HOOKS)
@pytest.mark.parametrize("chip", ["nvidia-h100", "nvidia-a100", "nvidia-b200"])
def test_what_fits_is_inductors_own(chip: str, kind: str) -> None:
    with lowering_for(chip):
        own = configs(kind, 128)
        registration.enable()
        assert configs(kind, 128) == own
        assert not registration.explain().answers
        assert registration.status().counters.abstentions.total() == 0


def test_configs_for_max_autotune_that_do_not_fit_are_left_out() -> None:
    with lowering_for(RTX_4090), inductor_config.patch(max_autotune=True):
        own = configs("forward", 128)
        registration.enable()
        given = configs("forward", 128)
    dropped = [config for config in own if config not in given]
    assert dropped
    assert {launchable(RTX_4090, "forward", 128, config) for config in dropped} == {False}
    assert {launchable(RTX_4090, "forward", 128, config) for config in given} == {True}


def test_a_shipped_table_shortens_the_list_for_max_autotune_and_decides_nothing_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("TORCH_DIODE_MODEL")
    with lowering_for("nvidia-a100"):
        registration.enable()
        (own,) = configs("forward", 128)
        with inductor_config.patch(max_autotune=True):
            given = configs("forward", 128)
            registration.disable()
            listed = configs("forward", 128)
    assert len(given) < len(listed)
    assert own in given
    assert own == listed[-1]


@heuristic("attention")
def greedy(question: Any) -> list[KernelConfig]:
    """Inductor's own configs, whatever the chip."""
    return list(question.default)


def test_a_functions_configs_must_fit_too() -> None:
    with lowering_for(RTX_4090):
        registration.enable(greedy)
        (given,) = configs("forward", 256)
        (answer,) = registration.explain().answers
    assert launchable(RTX_4090, "forward", 256, given)
    assert answer.source == "greedy, what fits"


def test_where_a_function_fails_or_abstains_the_configs_fit_all_the_same() -> None:
    for answer in (None, "nonsense"):
        rule = CustomAnswer("attention", lambda _, given=answer: given)
        with lowering_for(RTX_4090), warnings.catch_warnings(record=True) as warned:
            registration.enable(rule)
            (given,) = configs("forward", 256)
            registration.disable()
        assert launchable(RTX_4090, "forward", 256, given)
        assert len(warned) == (answer is not None)


def test_a_function_may_take_any_config_that_was_compiled_and_fits() -> None:
    @heuristic("attention")
    def largest(question: Attention) -> list[KernelConfig]:
        return [max(question.fitting_configs, key=lambda config: config.sizes)]

    with lowering_for(RTX_4090):
        (own,) = configs("forward", 128)
        registration.enable(largest)
        (given,) = configs("forward", 128)
    assert given.sizes > own.sizes
    assert launchable(RTX_4090, "forward", 128, given)


def test_a_table_decides_the_rows_it_has() -> None:
    config = KernelConfig((("block_m", 64), ("block_n", 32)), 2, 4)
    table = AttentionTable({("forward", "bfloat16", 128): (config,)})
    with lowering_for("nvidia-h100"):
        own = configs("forward", 64)
        registration.enable(table)
        assert configs("forward", 128) == [config]
        assert configs("forward", 64) == own
        assert configs("forward", 128, torch.float16) == [config]


def test_the_cache_key_changes_with_what_is_known_to_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch_diode.candidates.gpu import attention as measured

    gpu, cpu = torch.device("cuda", 0), torch.device("cpu")
    with lowering_for(RTX_4090):
        registration.enable()
        integration = registration._registration.attention
        before = integration.fingerprint([cpu, gpu])
        assert before == integration.fingerprint([cpu, gpu]) != ""
        assert integration.fingerprint([cpu]) == ""
        monkeypatch.setattr(measured, "measured_digest", lambda: "others")
        assert integration.fingerprint([cpu, gpu]) != before


@pytest.mark.skipif(bool(lowered_here()), reason=lowered_here())
@pytest.mark.parametrize(("chip", "kind", "head_dim"), REPORTED)
def test_the_compiled_kernel_fits_where_torchs_own_does_not(
    chip: str, kind: str, head_dim: int
) -> None:
    limit = known(chip).shared_memory_per_block
    inputs = attention_inputs(kind, (1, 4, 2048, head_dim), torch.bfloat16)
    with pretend(known(chip)):
        own = compiled_attention(lower(attention(kind), inputs).source).metadata.shared
        if own <= limit:
            pytest.skip("this release of torch has a config that fits")
        registration.enable()
        given = compiled_attention(lower(attention(kind), inputs).source).metadata.shared
    assert given <= limit < own


@pytest.mark.skipif(bool(lowered_here()), reason=lowered_here())
def test_a_bias_counts_towards_what_fits() -> None:
    limit = known(RTX_3090).shared_memory_per_block
    inputs = attention_inputs("forward", (1, 4, 2048, 128), torch.bfloat16)
    bias = Input((4, 2048, 2048), torch.bfloat16)
    with pretend(known(RTX_3090)):
        plain = compiled_attention(lower(attention("forward"), inputs).source).metadata.shared
        function = attention("forward", biased=True)
        own = compiled_attention(lower(function, [*inputs, bias]).source).metadata.shared
        registration.enable()
        lower(attention("forward"), inputs)
        assert not registration.explain().answers
        given = compiled_attention(lower(function, [*inputs, bias]).source).metadata.shared
    assert plain <= limit < own
    assert given <= limit
    question = registration.explain().answers[0].question
    assert isinstance(question, Attention)
    assert (question.queries, question.value_dim) == (2048, 128)
    assert (question.score_tensors, question.mask_tensors) == ((2,), ())


def test_the_hooks_are_those_of_this_release() -> None:
    assert torch_compat.answer_hooks(["attention"]) == tuple(HOOKS.values())
