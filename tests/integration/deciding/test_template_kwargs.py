"""Cached keyword arguments are those that Inductor would derive."""

import gc
import weakref
from typing import Any

import pytest
import torch
from torch._inductor.choices import InductorChoices
from torch._inductor.virtualized import V

from tests.integration.cases import CONFIG, OPS
from tests.integration.forced import Forced
from torch_diode import DiodeInductorChoices, TritonGEMMConfig
from torch_diode.integration import registration
from torch_diode.integration.capture.fake_gpu import Dynamic, Input, lower
from torch_diode.integration.deciding import template_kwargs
from torch_diode.integration.deciding.request import ChoiceRequest
from torch_diode.integration.deciding.template_kwargs import TemplateKwargsCache, _comparable
from torch_diode.integration.hooks import torch_compat

pytestmark = pytest.mark.usefixtures("fake_h200")

SMALL = TritonGEMMConfig(16, 16, 16, group_m=8, num_stages=3, num_warps=1)
# Either side of the limits for TF32 on some release: multiples of 8 and 16, 16 and 512. Two of
# each, since Inductor derives two before one is reused.
SIZES = (
    *((384, 512, 640), (416, 544, 672)),
    *((15, 512, 512), (14, 528, 520)),
    *((100, 520, 1032), (116, 536, 2056)),
    *((64, 504, 512), (80, 488, 1024)),
    *((128, 640, 500), (144, 656, 492)),
    *((17, 513, 515), (33, 700, 901)),
    *((8, 64, 64), (4, 80, 72)),
)
ROWS = (256, 320, 384, 448)


class Compared(TemplateKwargsCache):
    """Derives every entry as well, and keeps both."""

    def __init__(self) -> None:
        super().__init__()
        self.pairs: list[tuple[Any, Any]] = []
        self.derivations = self.reused = 0

    def get(self, *arguments: Any) -> Any:
        before = self.derivations
        kwargs = super().get(*arguments)
        self.reused += self.derivations == before
        with template_kwargs.autotuning():
            self.pairs.append((kwargs, torch_compat.template_kwargs_of(*arguments)))
        return kwargs


@pytest.fixture
def compared(monkeypatch):
    cache, derive = Compared(), torch_compat.template_kwargs_of

    def counted(*arguments):
        cache.derivations += 1
        return derive(*arguments)

    monkeypatch.setattr(torch_compat, "template_kwargs_of", counted)
    monkeypatch.setattr(template_kwargs, "shared", cache)
    return cache


def inputs_of(
    op: str, m: Any, n: int = 512, k: int = 640, dtype: torch.dtype = torch.bfloat16
) -> list[Input]:
    named = {"M": m, 384: m, 512: n, 640: k}
    return [
        Input(tuple(named.get(size, size) for size in shape), dtype)  # type: ignore[arg-type]
        for shape in OPS[op][1]
    ]


def assert_equal(compared: Compared) -> None:
    assert compared.pairs
    for cached, derived in compared.pairs:
        assert _comparable(cached) == _comparable(derived)
        assert list(cached.kwargs) == list(derived.kwargs)
        assert set(cached.extra) == set(derived.extra)
        assert cached.inputs.nodes() == derived.inputs.nodes()


@pytest.mark.parametrize(
    ("dtype", "precision"),
    [
        (torch.bfloat16, "highest"),
        (torch.float16, "highest"),
        (torch.float32, "highest"),
        (torch.float32, "high"),
    ],
)
@pytest.mark.parametrize("op", OPS)
def test_static_matmuls_get_what_inductor_derives(op, dtype, precision, compared):
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        with registration.using(Forced(SMALL)):
            for sizes in (*SIZES, *SIZES):
                lower(OPS[op][0], inputs_of(op, *sizes, dtype), generate=False)
    finally:
        torch.set_float32_matmul_precision(before)
    assert compared.reused >= len(SIZES)
    assert_equal(compared)


@pytest.mark.parametrize("op", OPS)
def test_symbols_are_not_cached(op, compared):
    with registration.using(Forced(CONFIG)):
        for hint in ROWS:
            lower(OPS[op][0], inputs_of(op, Dynamic("s0", hint)), generate=False)
    assert compared.pairs
    assert compared.reused == 0


def test_other_scalars_are_another_entry(compared):
    def scaled(alpha):
        return lambda bias, a, b: torch.addmm(bias, a, b, alpha=alpha, beta=0.5)

    with registration.using(Forced(CONFIG)):
        for alpha in (2.0, 3.0, 2.0, 3.0):
            for m in ROWS:
                lower(scaled(alpha), inputs_of("addmm", m), generate=False)
    assert compared.reused
    assert_equal(compared)  # the epilogue's hash among them


def test_tma_is_derived_each_time(compared):
    with registration.using(Forced(CONFIG, template="triton::mm_persistent_tma"), tma=True):
        for m in ROWS:
            lower(torch.mm, inputs_of("mm", m), generate=False)
    assert compared.pairs
    assert compared.reused == 0


def test_even_k_is_what_inductor_derives(monkeypatch):
    pairs: list[tuple[bool, bool]] = []
    real = ChoiceRequest._kwargs

    def compare(self, derived, config):
        template = self.offered(tma=False)["triton::mm"]
        with template_kwargs.autotuning():
            own = torch_compat.template_kwargs_of(
                self.handler, self._expanded_inputs, template, self.op, {}, self._fixed_layout
            )
        pairs.append((self._k_is_multiple_of(own.kwargs["BLOCK_K"]), own.kwargs["EVEN_K"]))
        return real(self, derived, config)

    monkeypatch.setattr(ChoiceRequest, "_kwargs", compare)
    with registration.using(Forced(SMALL)):
        for sizes in SIZES:
            lower(torch.mm, inputs_of("mm", *sizes), generate=False)
    assert {even for even, _ in pairs} == {True, False}
    assert all(ours is theirs for ours, theirs in pairs)


@pytest.mark.parametrize("by_hand", [False, True])
def test_an_entry_is_reused_once_two_sizes_agree(by_hand, compared):
    # Setting a handler takes effect at once: only where its `with` also undoes it.
    def by_handler():
        return V.set_choices_handler(DiodeInductorChoices(Forced(CONFIG)))

    with by_handler() if by_hand else registration.using(Forced(CONFIG)):
        for sizes, reused in (((384,), 0), ((384,), 0), ((416, 544, 672), 0), ((384,), 1)):
            lower(torch.mm, inputs_of("mm", *sizes), generate=False)
            assert compared.reused == reused


def derived(allow_tf32: bool = True) -> torch_compat.TemplateKwargs:
    extra = {"ALLOW_TF32": allow_tf32}
    return torch_compat.TemplateKwargs({"BLOCK_M": 64}, extra, print, None)


def test_where_two_sizes_differ_an_entry_is_never_reused():
    cache = TemplateKwargsCache()
    cache._add("key", derived(True), ((1, 2),))
    cache._add("key", derived(False), ((3, 4),))
    cache._add("key", derived(True), ((5, 6),))
    assert cache._entries["key"].usable is False


@pytest.mark.skipif(not hasattr(InductorChoices, "get_ktc"), reason="2.9 has no get_ktc")
def test_a_handler_with_its_own_get_ktc_is_not_cached(compared):
    class Special(InductorChoices):
        def get_ktc(self, *args, **kwargs):
            return super().get_ktc(*args, **kwargs)

        def uuid(self):
            return "special"

    with registration.using(Forced(CONFIG)), V.set_choices_handler(Special()):
        for m in ROWS:
            lower(torch.mm, inputs_of("mm", m), generate=False)
    assert compared.pairs
    assert compared.reused == 0


def test_no_graph_is_kept_alive():
    graphs = []
    with registration.using(Forced(CONFIG)):
        for m in ROWS:
            lowered = lower(torch.mm, inputs_of("mm", m), generate=False)
            graphs.append(weakref.ref(lowered.graph))
    del lowered
    gc.collect()
    assert [graph() for graph in graphs] == [None] * len(ROWS)
