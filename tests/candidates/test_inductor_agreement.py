"""The candidate space against the choices of Inductor's CUDA lowering, without a GPU."""

from typing import Any

import pytest

pytest.importorskip("triton")
torch = pytest.importorskip("torch")

from torch._inductor.choices import InductorChoices  # noqa: E402
from torch._inductor.select_algorithm import ExternKernelChoice  # noqa: E402
from torch._inductor.virtualized import V  # noqa: E402

from tests.samples import H200  # noqa: E402
from torch_diode.candidates.gpu.eligibility import k_splits, offered_templates  # noqa: E402
from torch_diode.candidates.gpu.exhaustive import exhaustive_configs  # noqa: E402
from torch_diode.candidates.space import block_cap  # noqa: E402
from torch_diode.integration.capture.fake_gpu import Input, lower, pretend  # noqa: E402
from torch_diode.types.problem import BATCHED, MMShape  # noqa: E402

if not hasattr(InductorChoices, "_finalize_template_configs"):
    pytest.skip("torch 2.9 has another hook", allow_module_level=True)

Config = tuple[int, ...]
_FIELDS = ("BLOCK_M", "BLOCK_N", "BLOCK_K", "GROUP_M", "num_stages", "num_warps")


class _Recorder(InductorChoices):
    """Records the offered configs and keeps the vendor's kernel, so that lowering is quick."""

    def __init__(self) -> None:
        self.offered: dict[str, list[dict[str, Any]]] = {}

    def uuid(self) -> str:
        return "recorder"

    def _finalize_template_configs(self, template_choices: Any, *args: Any, **kwargs: Any) -> Any:
        kept = []
        for uid, choices in template_choices.items():
            choices = list(choices)
            self.offered.setdefault(uid, []).extend(c.params.to_kwargs() for c in choices)
            kept += [c for c in choices if isinstance(c.template, ExternKernelChoice)]
        return kept


@pytest.fixture(autouse=True, scope="module")
def fake_gpu():
    with pretend(H200):
        yield


def inductors_offer(problem: MMShape) -> dict[str, list[dict[str, Any]]]:
    dtype = getattr(torch, problem.dtype)
    m, n, k = problem.M, problem.N, problem.K
    batch = (problem.B,) if problem.op in BATCHED else ()
    a = Input((*batch, m, k), dtype, (1, m) if problem.transpose_a else None)
    b = Input((*batch, k, n), dtype, (1, k) if problem.transpose_b else None)
    bias = {"none": (), "vector": (n,), "matrix": (*batch, m, n)}[problem.bias]
    inputs = ([Input(bias, dtype)] if bias else []) + [a, b]
    config = {
        "max_autotune": True,
        "max_autotune_gemm_backends": "ATEN,TRITON",
        "max_autotune_gemm_search_space": "EXHAUSTIVE",
        "max_autotune_prune_choices_based_on_shared_mem": False,
        "triton.enable_persistent_tma_matmul": True,
    }
    recorder = _Recorder()
    with V.set_choices_handler(recorder):
        lower(getattr(torch, problem.op), inputs, config, generate=False)
    return recorder.offered


def configs_of(offer: list[dict[str, Any]]) -> set[Config]:
    return {tuple(kwargs[field] for field in _FIELDS) for kwargs in offer}


def our_configs(template: str, problem: MMShape) -> set[Config]:
    caps = [block_cap(size) for size in (problem.M, problem.N, problem.K)]
    fields = ("block_m", "block_n", "block_k", "group_m", "num_stages", "num_warps")
    configs = exhaustive_configs(template, "cuda").fields
    rows = zip(*(configs[field].tolist() for field in fields), strict=True)
    return {row for row in rows if all(b <= cap for b, cap in zip(row, caps, strict=False))}


@pytest.mark.parametrize(
    "problem",
    [
        MMShape("mm", 1024, 2048, 512),
        MMShape("mm", 2, 2048, 512, transpose_b=True),
        MMShape("mm", 100, 72, 40),
        MMShape("mm", 1024, 2047, 512),
        MMShape("mm", 512, 512, 512, dtype="float32"),
        MMShape("mm", 520, 512, 511, transpose_a=True),
        MMShape("addmm", 200, 512, 64),
        MMShape("bmm", 128, 64, 32, B=8),
        MMShape("baddbmm", 33, 64, 4096, B=2),
        MMShape("mm", 512, 512, 512, dtype="float64"),
        MMShape("mm", 16, 16, 640),
    ],
    ids=str,
)
def test_inductor_offers_the_same_templates_with_the_same_configs(problem):
    theirs = inductors_offer(problem)
    ours = offered_templates(problem, H200)
    triton = {uid for uid in theirs if uid.startswith("triton::")}
    assert triton == {name for name in ours if name.startswith("triton::")}
    for template in triton:
        assert configs_of(theirs[template]) == our_configs(template, problem)


@pytest.mark.parametrize(
    "problem",
    [MMShape("mm", 16, 16, 640), MMShape("mm", 8, 32, 7 * 4096), MMShape("mm", 3, 5, 12345 * 8)],
    ids=str,
)
def test_inductor_splits_k_into_the_same_parts_in_the_same_order(problem):
    offer = inductors_offer(problem).get("decompose_k", [])
    assert tuple(int(kwargs["k_split"]) for kwargs in offer) == k_splits(problem)


def test_a_single_row_has_no_tma_since_inductor_reads_it_as_transposed():
    """If this fails, torch has fixed it and the rule in `tma_aligned` can be removed."""
    problem = MMShape("mm", 1, 2048, 512, transpose_b=True)
    offer = inductors_offer(problem)["triton::mm_persistent_tma"]
    assert {kwargs["A_ROW_MAJOR"] for kwargs in offer} == {False}
    assert "triton::mm_persistent_tma" not in offered_templates(problem, H200)


def test_for_a_very_long_k_the_space_is_larger_than_inductors():
    problem = MMShape("mm", 16, 16, 65536)
    assert "triton::mm" not in inductors_offer(problem)
    assert "triton::mm" in offered_templates(problem, H200)
