"""What is used again of Inductor's is what Inductor would say."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
import torch
from torch._inductor.choices import InductorChoices
from torch._inductor.virtualized import V

from tests.integration.cases import CONFIG, OPS
from tests.integration.forced import Forced
from torch_diode.integration import registration
from torch_diode.integration.capture.fake_gpu import Dynamic, Input, lower
from torch_diode.integration.deciding import template_kwargs
from torch_diode.integration.deciding.request import ChoiceRequest
from torch_diode.integration.deciding.template_kwargs import TemplateKwargsCache
from torch_diode.integration.hooks import torch_compat
from torch_diode.integration.hooks.choices import DiodeInductorChoices
from torch_diode.types.candidate import TritonGEMMConfig

pytestmark = pytest.mark.usefixtures("fake_h200")

SMALL = TritonGEMMConfig(16, 16, 16, group_m=8, num_stages=3, num_warps=1)
# Either side of what decides about TF32 on some release: multiples of 8 and 16, 16 and 512. Two of
# each, since Inductor is asked about two.
SIZES = (
    *((384, 512, 640), (416, 544, 672)),
    *((15, 512, 512), (14, 528, 520)),
    *((100, 520, 1032), (116, 536, 2056)),
    *((64, 504, 512), (80, 488, 1024)),
    *((128, 640, 500), (144, 656, 492)),
    *((17, 513, 515), (33, 700, 901)),
    *((8, 64, 64), (4, 80, 72)),
)


class Compared(TemplateKwargsCache):
    """Asks Inductor as well, and keeps both answers."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: list[tuple[Any, Any]] = []
        self.reused = 0

    def of(self, *asked: Any) -> Any:
        before = self.asked_inductor
        found = super().of(*asked)
        self.reused += self.asked_inductor == before
        with template_kwargs.autotuning():
            self.answers.append((found, torch_compat.template_kwargs_of(*asked)))
        return found

    asked_inductor = 0


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> Compared:
    found, real = Compared(), torch_compat.template_kwargs_of

    def counted(*asked: Any) -> Any:
        found.asked_inductor += 1
        return real(*asked)

    monkeypatch.setattr(torch_compat, "template_kwargs_of", counted)
    monkeypatch.setattr(template_kwargs, "shared", found)
    return found


def inputs_of(op: str, m: Any, n: int, k: int, dtype: torch.dtype) -> list[Input]:
    named = {"M": m, 384: m, 512: n, 640: k}
    return [
        Input(tuple(named.get(size, size) for size in shape), dtype)  # type: ignore[arg-type]
        for shape in OPS[op][1]
    ]


def agree(found: Any, own: Any) -> None:
    assert template_kwargs._telling(found) == template_kwargs._telling(own)
    assert set(found.kwargs) == set(own.kwargs)
    assert set(found.extra) == set(own.extra)
    assert list(found.kwargs) == list(own.kwargs)
    assert found.inputs.nodes() == own.inputs.nodes()


@pytest.mark.parametrize("precision", ["highest", "high"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize("op", OPS)
def test_static_matmuls_get_what_inductor_derives(
    op: str, dtype: torch.dtype, precision: str, compared: Compared
) -> None:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        with registration.using(Forced(SMALL)):
            for sizes in (*SIZES, *SIZES):
                lower(OPS[op][0], inputs_of(op, *sizes, dtype), generate=False)
    finally:
        torch.set_float32_matmul_precision(before)
    assert compared.reused >= len(SIZES)
    for found, own in compared.answers:
        agree(found, own)


@pytest.mark.parametrize("op", OPS)
def test_symbols_are_left_to_inductor(op: str, compared: Compared) -> None:
    with registration.using(Forced(CONFIG)):
        for hint in (384, 416, 448, 480):
            rows = Dynamic("s0", hint)
            lower(OPS[op][0], inputs_of(op, rows, 512, 640, torch.bfloat16), generate=False)
    assert compared.answers
    assert compared.reused == 0


def test_scalars_make_another_base(compared: Compared) -> None:
    def scaled(alpha: float) -> Any:
        return lambda bias, a, b: torch.addmm(bias, a, b, alpha=alpha, beta=0.5)

    with registration.using(Forced(CONFIG)):
        for alpha in (2.0, 3.0, 2.0, 3.0):
            for m in (256, 320, 384, 448):
                inputs = inputs_of("addmm", m, 512, 640, torch.bfloat16)
                lower(scaled(alpha), inputs, generate=False)
    assert compared.reused
    for found, own in compared.answers:
        agree(found, own)
        assert found.extra["epilogue_fn_hash"] == own.extra["epilogue_fn_hash"]


def test_tma_is_derived_each_time(compared: Compared) -> None:
    forced = Forced(CONFIG, template="triton::mm_persistent_tma")
    with registration.using(forced, tma=True):
        for m in (256, 320, 384, 448):
            inputs = inputs_of("mm", m, 512, 640, torch.bfloat16)
            lower(torch.mm, inputs, generate=False)
    assert compared.answers
    assert compared.reused == 0


def test_whether_k_is_even_is_what_inductor_says(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[bool, bool]] = []
    real = ChoiceRequest._kwargs

    def noting(self: ChoiceRequest, base: dict[str, Any], config: Any) -> dict[str, Any]:
        with template_kwargs.autotuning():
            own = torch_compat.template_kwargs_of(
                self.handler,
                self._triton_inputs,
                self.offered(tma=False)["triton::mm"],
                self.op,
                {},
                self._fixed_layout,
            )
        assert own is not None
        seen.append((self._k_is_multiple_of(own.kwargs["BLOCK_K"]), own.kwargs["EVEN_K"]))
        return real(self, base, config)

    monkeypatch.setattr(ChoiceRequest, "_kwargs", noting)
    with registration.using(Forced(SMALL)):
        for m, n, k in SIZES:
            inputs = inputs_of("mm", m, n, k, torch.bfloat16)
            lower(torch.mm, inputs, generate=False)
    assert {even for even, _ in seen} == {True, False}
    assert all(ours is theirs for ours, theirs in seen)


def test_a_base_is_used_again_once_two_sizes_agree(compared: Compared) -> None:
    same = inputs_of("mm", 384, 512, 640, torch.bfloat16)
    other = inputs_of("mm", 416, 544, 672, torch.bfloat16)
    with registration.using(Forced(CONFIG)):
        lower(torch.mm, same, generate=False)
        lower(torch.mm, same, generate=False)
        assert compared.reused == 0
        lower(torch.mm, other, generate=False)
        assert compared.reused == 0
        lower(torch.mm, same, generate=False)
        assert compared.reused == 1


def test_where_two_sizes_differ_inductor_is_always_asked() -> None:
    def base(allowed: bool) -> torch_compat.TemplateKwargs:
        return torch_compat.TemplateKwargs({"BLOCK_M": 64}, {"ALLOW_TF32": allowed}, print, None)

    kept = TemplateKwargsCache()
    kept._keep("key", base(True), ((1, 2),))
    kept._keep("key", base(False), ((3, 4),))
    kept._keep("key", base(True), ((5, 6),))
    assert kept._kept["key"].usable is False


@pytest.mark.skipif(not hasattr(InductorChoices, "get_ktc"), reason="2.9 has no get_ktc")
def test_a_handler_with_ways_of_its_own_is_asked_each_time(compared: Compared) -> None:
    class Special(InductorChoices):
        def get_ktc(self, *args: Any, **kwargs: Any) -> Any:
            return super().get_ktc(*args, **kwargs)

        def uuid(self) -> str:
            return "special"

    with registration.using(Forced(CONFIG)), V.set_choices_handler(Special()):
        for m in (256, 320, 384, 448):
            lower(torch.mm, inputs_of("mm", m, 512, 640, torch.bfloat16), generate=False)
    assert compared.answers
    assert compared.reused == 0


def test_nothing_of_a_graph_is_kept_alive() -> None:
    graphs = []
    with registration.using(Forced(CONFIG)):
        for m in (256, 320, 384):
            inputs = inputs_of("mm", m, 512, 640, torch.bfloat16)
            graphs.append(weakref.ref(lower(torch.mm, inputs, generate=False).graph))
    gc.collect()
    assert [graph() for graph in graphs] == [None] * 3


def test_the_number_kept_is_bounded() -> None:
    kept = TemplateKwargsCache()
    for number in range(3 * template_kwargs._KEPT):
        kept._keep(number, torch_compat.TemplateKwargs({}, {}, print, None), ())
    assert len(kept._kept) <= template_kwargs._KEPT
    kept.clear()
    assert not kept._kept


def test_a_handler_put_in_by_hand_shares_them_too(compared: Compared) -> None:
    handler = DiodeInductorChoices(Forced(CONFIG))
    with V.set_choices_handler(handler):
        for m in (256, 320, 384):
            lower(torch.mm, inputs_of("mm", m, 512, 640, torch.bfloat16), generate=False)
    assert compared.reused == 1
