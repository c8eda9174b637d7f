from __future__ import annotations

from dataclasses import replace

import pytest

from torch_diode.candidates.offers import DECOMPOSE_K_THRESHOLD, k_splits
from torch_diode.collection.strata import (
    MOST_FLOPS,
    Stratum,
    sizes_of,
    training_strata,
    validation_strata,
)
from torch_diode.types.problem import MMShape

STRATA = [*training_strata(), *(stratum for stratum, _ in validation_strata())]


def test_names_tell_strata_apart() -> None:
    strata = training_strata()
    assert len({s.name for s in strata}) == len(strata)


@pytest.mark.parametrize("stratum", STRATA, ids=lambda s: s.name)
def test_drawn_problems_are_of_the_stratum(stratum: Stratum) -> None:
    drawn = stratum.problems(12, seed=5)
    assert len(set(drawn)) == 12
    assert drawn == stratum.problems(12, seed=5)
    assert drawn != stratum.problems(12, seed=6)
    for problem in drawn:
        assert (problem.op, problem.dtype, problem.layout) == (
            stratum.op,
            stratum.dtype,
            stratum.layout,
        )
        assert problem.flops <= MOST_FLOPS[stratum.precision]
        if not stratum.most_m and not stratum.deep and min(stratum.multiples) == 8:
            assert stratum.has(problem)
        if stratum.most_m:
            assert stratum.most_m >= problem.M
        if stratum.deep:
            assert DECOMPOSE_K_THRESHOLD * max(problem.M, problem.N) <= problem.K
        if stratum.deep and stratum.op == "mm":
            assert k_splits(problem) or problem.K < 256
        if stratum.short:
            assert problem.K <= 256
        if stratum.many:
            assert problem.B >= 64
            assert max(problem.M, problem.N, problem.K) < 512


def test_ragged_is_the_number_of_tokens() -> None:
    scores = Stratum("bmm", "bfloat16", "nt", many=True, ragged=True)
    values = Stratum("bmm", "bfloat16", "nn", many=True, ragged=True)
    assert all(p.N % 2 == 1 and p.K % 8 == 0 for p in scores.problems(20, seed=1))
    assert all(p.K % 2 == 1 and p.N % 8 == 0 for p in values.problems(20, seed=1))
    assert scores.has(MMShape("bmm", 49, 49, 32, 1536, "bfloat16", transpose_b=True))
    assert not scores.has(MMShape("bmm", 48, 48, 32, 1536, "bfloat16", transpose_b=True))
    assert values.has(MMShape("bmm", 49, 32, 49, 1536, "bfloat16"))


def test_what_is_held_out_is_not_drawn() -> None:
    stratum = Stratum("mm", "bfloat16", "nt")
    held = {sizes_of(p) for p in stratum.problems(30, seed=1)}
    again = stratum.problems(30, seed=1, never=held)
    assert not held & {sizes_of(p) for p in again}


def test_even_means_that_no_block_leaves_a_rest() -> None:
    for problem in Stratum("mm", "bfloat16", "nt", even=True).problems(40, seed=2):
        assert all(problem.K % block == 0 for block in (16, 32, 64, 128, 256) if block <= problem.K)


def test_a_problem_of_another_kind_does_not_belong() -> None:
    stratum = Stratum("addmm", "float16", "nt")
    problem = MMShape("addmm", 77, 320, 640, dtype="float16", transpose_b=True)
    assert stratum.has(problem)
    for other in (
        replace(problem, bias="matrix"),
        replace(problem, transpose_b=False),
        replace(problem, K=641),
        replace(problem, M=100_000, N=80_000),
        MMShape("addmm", 77, 320, 640, dtype="bfloat16", transpose_b=True),
    ):
        assert not stratum.has(other)


def test_validation_has_every_op_and_precision() -> None:
    strata = [stratum for stratum, _ in validation_strata()]
    assert {s.op for s in strata} == {"mm", "addmm", "bmm", "baddbmm"}
    assert {s.precision for s in strata} == {"bfloat16", "float16", "tf32", "float32"}
    assert sum(count for _, count in validation_strata()) >= 500
