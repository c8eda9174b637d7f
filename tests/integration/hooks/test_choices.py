"""Decisions in every mode, through Inductor's real CUDA lowering."""

import ast
import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch._inductor import config
from torch._inductor.choices import InductorChoices
from torch._inductor.select_algorithm import AlgorithmSelectorCache, ExternKernelCaller
from torch._inductor.virtualized import V

from tests.integration.cases import BLOCKS, CONFIG, MAX_AUTOTUNE, OPS, K, M, N, inputs
from tests.integration.forced import Forced, FunctionHeuristic, abstaining
from torch_diode import Candidates, Ranking, TritonGEMMConfig
from torch_diode.integration import registration
from torch_diode.integration.capture.fake_gpu import Dynamic, Input, lower
from torch_diode.integration.deciding.choice_builder import BENCHMARK_SET, keep_single_choice
from torch_diode.integration.hooks import torch_compat
from torch_diode.integration.hooks.choices import DiodeInductorChoices
from torch_diode.integration.hooks.fallback import DiodeWarning
from torch_diode.integration.hooks.torch_compat import annotations_of
from torch_diode.types.candidate import ATEN

pytestmark = pytest.mark.usefixtures("fake_h200")

BF16, F16, F32 = torch.bfloat16, torch.float16, torch.float32


def tile_of(choice: Any) -> tuple[int, ...]:
    """Block sizes of M, K and N."""
    return tuple(ast.literal_eval(choice.log_info["tile_shape"]))


@pytest.mark.parametrize(
    ("dtype", "dynamic"), [(BF16, False), (BF16, True), (F16, False), (F32, True)]
)
@pytest.mark.parametrize("op", OPS)
def test_plain_mode_runs_the_single_best_and_benchmarks_nothing(op, dtype, dynamic, benchmarked):
    with registration.using(Forced(CONFIG)):
        lowered = lower(OPS[op][0], inputs(op, dtype, dynamic))
    assert lowered.configs == [BLOCKS]
    assert lowered.kernels == ["triton_tem_fused_0"]
    assert benchmarked == []


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("op", OPS)
def test_max_autotune_gets_the_best_candidates_and_aten(op, dynamic, benchmarked):
    with registration.using(Forced(CONFIG)):
        lower(OPS[op][0], inputs(op, dynamic=dynamic), MAX_AUTOTUNE, generate=False)
    (choices,) = benchmarked
    triton = [c for c in choices if not isinstance(c, ExternKernelCaller)]
    assert len(triton) == 4
    assert tile_of(triton[0]) == (64, 32, 64)
    assert any(isinstance(c, ExternKernelCaller) for c in choices)


def test_a_benchmark_set_is_timed_cleanly_and_inductors_benchmark_is_restored(benchmarked):
    before = dict(vars(AlgorithmSelectorCache))
    with registration.using(Forced(CONFIG)):
        lower(torch.mm, inputs("mm"), generate=False)
        assert dict(vars(AlgorithmSelectorCache)) == before
        lower(torch.mm, inputs("mm"), MAX_AUTOTUNE, generate=False)
        assert AlgorithmSelectorCache.__dict__["lookup"] is not before.get("lookup")
    (choices,) = benchmarked
    triton = [c for c in choices if not isinstance(c, ExternKernelCaller)]
    assert all(annotations_of(choice)[BENCHMARK_SET] for choice in triton)
    assert dict(vars(AlgorithmSelectorCache)) == before


def test_max_autotune_gets_more_candidates_the_larger_the_uncertainty(benchmarked):
    for sigma, count in ((0.1, 2), (2.0, 15)):
        with registration.using(Forced(CONFIG, sigma=sigma)):
            lower(torch.mm, inputs("mm"), MAX_AUTOTUNE, generate=False)
        assert len(benchmarked.pop()) == count


@pytest.mark.parametrize("op", OPS)
def test_single_mode_benchmarks_nothing_under_max_autotune(op, benchmarked):
    for heuristic, kernels in ((Forced(CONFIG), ["triton_tem_fused_0"]), (Forced(None), [op])):
        with registration.using(heuristic, mode="single"):
            lowered = lower(OPS[op][0], inputs(op), MAX_AUTOTUNE)
        assert lowered.kernels == kernels
    assert benchmarked == []
    assert registration.status().counters.decisions == 2


@pytest.mark.parametrize("config", [{}, MAX_AUTOTUNE], ids=["plain", "max-autotune"])
@pytest.mark.parametrize("op", OPS)
def test_an_abstention_generates_plain_torchs_code(op, config, benchmarked):
    config = {**config, "benchmark_epilogue_fusion": False}

    def model(*args):
        return torch.relu(OPS[op][0](*args))

    plain = lower(model, inputs(op), config).source
    offered = [len(choices) for choices in benchmarked]
    benchmarked.clear()
    with registration.using(abstaining()):
        assert lower(model, inputs(op), config).source == plain
    assert [len(choices) for choices in benchmarked] == offered
    assert registration.status().counters.abstentions == {f"function abstained on {op} bfloat16": 1}


def test_plain_torchs_code_without_a_heuristic_and_where_aten_is_best():
    plain = lower(torch.mm, inputs("mm")).source
    registration.enable()
    assert lower(torch.mm, inputs("mm")).source == plain
    assert registration.status().counters.decisions == 0
    with registration.using(Forced(None)):
        assert lower(torch.mm, inputs("mm")).source == plain
    assert str(registration.explain()[-1].winner.candidate) == "aten"


def raising(candidates: Candidates) -> Ranking:
    raise RuntimeError("the model is on fire")


FAULTS = {
    "RuntimeError: the model is on fire": raising,
    "got a predicted time that is not a number": lambda c: Ranking.by_time(
        np.full(len(c), np.nan), "broken"
    ),
    "expected one for each of": lambda c: Ranking.by_time(np.ones(len(c) - 1), "broken"),
    "expected a Ranking": lambda c: [1, 2, 3],
}


@pytest.mark.parametrize("cause", FAULTS)
def test_an_error_falls_back_with_one_warning_that_names_it(cause):
    plain = lower(torch.mm, inputs("mm")).source
    heuristic = FunctionHeuristic(FAULTS[cause])
    with registration.using(heuristic), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            assert lower(torch.mm, inputs("mm")).source == plain
    (warning,) = [w for w in caught if w.category is DiodeWarning]
    assert cause in str(warning.message)
    assert registration.status().counters.fallbacks.total() == 2


def test_an_error_does_not_fail_a_compile_where_warnings_are_errors():
    with registration.using(FunctionHeuristic(raising)), warnings.catch_warnings():
        warnings.simplefilter("error", DiodeWarning)
        assert lower(torch.mm, inputs("mm")).kernels == ["mm"]


def test_a_candidate_that_cannot_be_rendered_is_skipped(monkeypatch):
    seen: list[bool] = []

    def fails_once(choice):
        seen.append(True)
        return len(seen) > 1

    monkeypatch.setattr(torch_compat, "can_be_rendered", fails_once)
    with registration.using(Forced(CONFIG)):
        lower(torch.mm, inputs("mm"), generate=False)
    decision = registration.explain()[-1]
    assert str(decision.winner.candidate) == "aten"  # the second in the forced order


def test_other_ops_pass_through_uncounted():
    with registration.using(FunctionHeuristic(raising)):
        lower(lambda x: torch.softmax(x, -1), [Input((64, 64))])
        lower(torch._int_mm, [Input((64, 64), torch.int8)] * 2, generate=False)
    counters = registration.status().counters
    assert (counters.decisions, counters.abstentions, counters.fallbacks) == (0, {}, {})


def test_an_unsupported_problem_is_an_abstention():
    strided = [Input((M, K), strides=(2 * K, 2)), Input((K, N))]
    with registration.using(Forced(CONFIG)):
        lower(torch.mm, strided, generate=False)
        lower(torch.mm, [Input((M, K), torch.float64), Input((K, N), torch.float64)])
    counters = registration.status().counters
    assert counters.fallbacks == {}
    assert counters.abstentions.total() >= 1


def test_no_triton_where_the_user_excluded_it():
    with registration.using(Forced(CONFIG)):
        lowered = lower(torch.mm, inputs("mm"), {"max_autotune_gemm_backends": "ATEN"})
    assert lowered.kernels == ["mm"]


@pytest.mark.parametrize("bias", [(N,), (M, N), (1, N), (M, 1), (1,)], ids=str)
def test_every_form_of_bias_reaches_the_template(bias):
    operands = [Input(bias), Input((M, K)), Input((K, N))]
    with registration.using(Forced(CONFIG)):
        for function in (torch.addmm, lambda b, x, w: torch.addmm(torch.sin(b), x, w)):
            assert lower(function, operands).configs == [BLOCKS]
    assert registration.status().counters.fallbacks == {}


@pytest.mark.parametrize(
    ("k", "even"), [(K, True), (K + 8, False), (Dynamic("s0", K), False)], ids=str
)
def test_arguments_that_follow_from_the_config_are_right(k, even):
    with registration.using(Forced(CONFIG)):
        source = lower(torch.mm, [Input((M, k)), Input((k, N))]).source
    assert f"EVEN_K : tl.constexpr = {even}" in source
    assert "ACC_TYPE : tl.constexpr = tl.float32" in source
    assert "num_stages=3" in source
    assert "num_warps=4" in source


def batched(size: Any) -> Any:
    return lower(torch.bmm, [Input((size, 64, 128)), Input((size, 128, 64))])


@pytest.fixture
def no_splitting(monkeypatch):
    """As before 2.12: the batch is a dimension of the grid."""
    monkeypatch.setattr(torch_compat, "max_batch_size", lambda: 65535)


@pytest.mark.usefixtures("no_splitting")
@pytest.mark.parametrize(("size", "kernel"), [(65535, "triton_tem_fused_0"), (65536, "bmm")])
def test_a_batch_too_large_for_the_grid_is_left_to_aten(size, kernel):
    with registration.using(Forced(CONFIG)):
        assert batched(size).kernels == [kernel]


@pytest.mark.usefixtures("no_splitting")
@pytest.mark.parametrize(("hint", "chosen"), [(4096, True), (70000, False)])
def test_a_dynamic_batch_is_guarded_to_fit_the_grid(hint, chosen):
    with registration.using(Forced(CONFIG)):
        lowered = batched(Dynamic("s0", hint))
    assert (lowered.kernels == ["triton_tem_fused_0"]) == chosen
    guards = [str(guard.expr) for guard in lowered.graph.sizevars.shape_env.guards]
    assert any("65535" in guard for guard in guards) == chosen


@pytest.mark.parametrize(
    ("bias", "more_for_aten"), [((1,), False), ((1, 1), False), ((N,), True), ((M, 1), True)]
)
def test_a_bias_that_is_expanded_before_a_template_counts(bias, more_for_aten):
    def rank(candidates):
        """Templates ahead by less than another kernel takes."""
        return Ranking.by_time(np.where(candidates.is_template(ATEN), 11.0, 10.0), "close")

    with registration.using(FunctionHeuristic(rank)):
        kernels = lower(torch.addmm, [Input(bias), Input((M, K)), Input((K, N))]).kernels
    assert (kernels == ["addmm"]) != more_for_aten


@pytest.mark.skipif(not hasattr(config, "batch_invariant"), reason="an option since 2.13")
def test_torch_decides_under_batch_invariance():
    with registration.using(Forced(CONFIG)), config.patch(batch_invariant=True):
        assert lower(torch.mm, inputs("mm")).kernels == ["mm"]
    assert registration.status().counters.decisions == 0


@pytest.mark.skipif(torch.__version__ < "2.11", reason="asks the driver itself up to 2.10")
def test_tma_templates_are_offered_where_torch_or_the_user_enables_them():
    config = TritonGEMMConfig(128, 128, 64, num_stages=3, num_warps=8)
    heuristic = Forced(config, "triton::mm_persistent_tma")
    with registration.using(heuristic):
        assert lower(torch.mm, inputs("mm"), generate=False)
        assert registration.status().counters.decisions == 0
        lower(torch.mm, inputs("mm"), {"triton.enable_persistent_tma_matmul": True}, generate=False)
        assert registration.status().counters.decisions == 1
    with registration.using(heuristic, tma=True):
        lower(torch.mm, inputs("mm"), generate=False)
    assert registration.status().counters.decisions == 2


def test_observe_mode_records_and_changes_nothing():
    plain = lower(torch.mm, inputs("mm")).source
    with registration.using(Forced(CONFIG), mode="observe"):
        assert lower(torch.mm, inputs("mm")).source == plain
    assert len(registration.explain()) == 1


@pytest.mark.parametrize("op", OPS)
def test_observe_mode_leaves_max_autotune_its_list(op):
    """Also where ATen would be the single choice."""
    counts: list[int] = []

    def count(choices):
        counts.append(len(keep_single_choice(choices)))
        return choices[:1]  # one is not benchmarked

    undo = torch_compat.add_preprocessing(count)
    try:
        lower(getattr(torch, op), inputs(op), MAX_AUTOTUNE, generate=False)
        with registration.using(Forced(None), mode="observe"):
            lower(getattr(torch, op), inputs(op), MAX_AUTOTUNE, generate=False)
            assert len(registration.explain()) == 1
    finally:
        undo()
    assert counts[0] == counts[1] > 1


class TheirChoices(InductorChoices):
    """Another handler, with state, that overrides the matmul hook and another method."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def _count(self, templates: list[Any]) -> None:
        self.calls += any(template.uid == "aten::mm" for template in templates)

    def _finalize_template_configs(self, *args: Any, **kwargs: Any) -> list[Any]:
        self._count(args[2])
        return super()._finalize_template_configs(*args, **kwargs)

    def get_mm_configs(self, *args: Any, **kwargs: Any) -> Iterator[Any]:
        self._count(args[2])
        yield from super().get_mm_configs(*args, **kwargs)

    def triton_kernel_kwargs(self, *args: Any, **kwargs: Any) -> Any:
        return "theirs"


def test_another_handler_is_composed_and_decides_where_we_abstain():
    theirs = TheirChoices()
    registration.enable(Forced(CONFIG))
    with V.set_choices_handler(theirs):
        assert V.choices.triton_kernel_kwargs() == "theirs"
        assert isinstance(V.choices, TheirChoices)
        assert isinstance(V.choices, DiodeInductorChoices)
        lower(torch.mm, inputs("mm"), generate=False)
        assert theirs.calls == 0
        with registration.using(abstaining()):
            lower(torch.mm, inputs("mm"), generate=False)
        assert theirs.calls == 1
    assert type(V.choices).__name__ == "DiodeInductorChoices"


def test_another_handler_of_matmuls_decides_where_no_heuristic_was_named(monkeypatch):
    """Such as torch's own lookup table."""
    theirs = TheirChoices()
    monkeypatch.delenv("TORCH_DIODE_MODEL")
    registration.enable()
    with V.set_choices_handler(theirs):
        lower(torch.mm, inputs("mm"), generate=False)
    assert theirs.calls == 1
    (reason,) = registration.status().counters.abstentions
    assert reason == "TheirChoices answers for matmuls, and no heuristic was named"


def test_a_handler_set_by_hand_needs_no_registration():
    with V.set_choices_handler(DiodeInductorChoices(Forced(CONFIG))):
        assert lower(torch.mm, inputs("mm")).configs == [BLOCKS]
    handlers = (
        DiodeInductorChoices(Forced(CONFIG)),
        DiodeInductorChoices(abstaining()),
        DiodeInductorChoices(Forced(CONFIG), tma=True),
    )
    assert len({handler.uuid() for handler in handlers}) == 3


def test_a_rankings_note_is_in_the_status():
    def older(candidates):
        order = np.arange(len(candidates))
        times = np.full(len(candidates), np.nan)
        return Ranking(order, times, "model", note="trained under torch 2.9")

    with registration.using(FunctionHeuristic(older)):
        lower(torch.mm, inputs("mm"), generate=False)
    assert registration.status().notes == ("model: trained under torch 2.9",)
    assert "trained under torch 2.9" in str(registration.status())


def test_the_same_request_gets_the_same_choice_every_time():
    with registration.using(Forced(CONFIG)):
        sources = {lower(torch.bmm, inputs("bmm")).source for _ in range(2)}
    assert len(sources) == 1


@pytest.mark.parametrize(("dynamic", "chosen"), [(False, True), (True, False)])
def test_static_sizes_count_for_a_template(dynamic, chosen):
    def rank(candidates):
        """ATen a tenth of a microsecond ahead."""
        times = np.where(candidates.is_template(ATEN), 9.9, 10.5)
        times[np.argmax(times)] = 10.0
        return replace(Ranking.by_time(times, "close"), open_sizes=True)

    with registration.using(FunctionHeuristic(rank)):
        lower(OPS["mm"][0], inputs("mm", dynamic=dynamic), generate=False)
        decision = registration.explain()[-1]
    assert (decision.winner.candidate.template != ATEN) == chosen
    assert decision.winner.predicted_us == pytest.approx(9.8 if chosen else 9.9)
