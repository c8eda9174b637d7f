"""The quick lists are the real ones, problem by problem."""

import numpy as np
import pytest
import torch

from tests.samples import H200
from torch_diode import Dataset, MMShape, Timing
from torch_diode.candidates import candidate_space
from torch_diode.candidates.space import canonical_candidate
from torch_diode.integration.capture import default_lists
from torch_diode.integration.capture.default_configs import default_candidates
from torch_diode.integration.capture.default_lists import listed_rows
from torch_diode.integration.hooks import torch_compat
from torch_diode.types.problem import BATCHED

if torch_compat.matmul_hook() != torch_compat.FINALIZE_HOOK:
    pytest.skip("torch 2.9 lists configs in another way", allow_module_level=True)


def drawn(count: int) -> list[MMShape]:
    """Problems of all kinds: tiny, odd, with one side far the longest."""
    rng = np.random.default_rng(7)
    found = [MMShape("mm", 8, 8, 3936), MMShape("addmm", 43, 157, 1), MMShape("mm", 1, 512, 512)]
    found += [MMShape(op, 9, 70, 1, B=3) for op in BATCHED]
    while len(found) < count:
        op = str(rng.choice(["mm", "addmm", "bmm", "baddbmm"]))
        sizes = np.exp(rng.uniform(0, 9, 3)).astype(int)
        if rng.random() < 0.6:
            sizes = np.maximum(sizes // 8 * 8, 8)
        found.append(
            MMShape(
                op,
                *sizes.tolist(),
                B=3 if op in BATCHED else 1,
                dtype=str(rng.choice(["bfloat16", "float16", "float32"])),
                transpose_a=bool(rng.integers(2)),
                transpose_b=bool(rng.integers(2)),
            )
        )
    return found


@pytest.mark.skipif(torch.__version__ < "2.11", reason="2.10 cuts small blocks in another way")
def test_the_rows_found_are_those_inductor_lists():
    timings, expected = [], []
    for problem in drawn(48):
        real = set(default_candidates(problem, H200))
        kernels = {canonical_candidate(candidate, problem) for candidate in real}
        space = dict.fromkeys([*candidate_space(problem, H200), *real])
        for candidate in space:
            timings.append(Timing("nvidia-h200", problem, candidate, 1.0))
            expected.append(canonical_candidate(candidate, problem) in kernels)
    dataset = Dataset.from_timings(timings)
    found = listed_rows(dataset, np.arange(len(dataset)), H200)
    wrong = np.flatnonzero(found.rows != np.array(expected))
    assert [str(timings[i]) for i in wrong[:3]] == []
    assert found.coverage == 1.0


def test_what_was_not_timed_lowers_the_coverage():
    problem = MMShape("mm", 4096, 4096, 4096)
    listed = list(default_candidates(problem, H200))
    half = [Timing("nvidia-h200", problem, c, 1.0) for c in listed[: len(listed) // 2 + 1]]
    dataset = Dataset.from_timings(half)
    found = listed_rows(dataset, np.arange(len(dataset)), H200)
    assert found.rows.all()
    assert found.coverage == pytest.approx(0.5, abs=0.05)


@pytest.mark.skipif(not torch.__version__.startswith("2.13"), reason="kept as of torch 2.13")
def test_without_triton_the_lists_kept_as_data_are_the_same(monkeypatch):
    problems = [MMShape(op, 900, 512, k, B=2 if op in BATCHED else 1, dtype="float16")
                for op in ("mm", "addmm", *BATCHED) for k in (512, 1)]  # fmt: skip
    timings = [
        Timing("nvidia-h200", problem, candidate, 1.0)
        for problem in problems
        for candidate in candidate_space(problem, H200)
    ]
    dataset = Dataset.from_timings(timings)
    rows = np.arange(len(dataset))
    real = listed_rows(dataset, rows, H200)
    monkeypatch.setattr(torch_compat, "has_triton", lambda: False)
    for function in (default_lists.base_list, default_lists._lists_outer):
        function.cache_clear()
    kept = listed_rows(dataset, rows, H200)
    assert kept.rows.tolist() == real.rows.tolist()
    assert (kept.coverage, real.note) == (real.coverage, "")
    assert kept.note == "that of torch 2.13.0, since triton is not installed"
