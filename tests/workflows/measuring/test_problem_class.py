from dataclasses import replace

from torch_diode.candidates.gpu.eligibility import DECOMPOSE_K_THRESHOLD, k_splits
from torch_diode.types.problem import MMShape
from workflows.measuring.problem_class import MOST_FLOPS, ProblemClass
from workflows.measuring.problem_classes import training_classes, validation_classes

CLASSES = [*training_classes(), *(problem_class for problem_class, _ in validation_classes())]


def test_drawn_problems_belong_to_their_class():
    for problem_class in CLASSES:
        drawn = problem_class.problems(12, seed=5)
        assert len(set(drawn)) == 12
        assert drawn == problem_class.problems(12, seed=5)
        assert drawn != problem_class.problems(12, seed=6)
        for problem in drawn:
            for name in ("op", "dtype", "layout"):
                assert getattr(problem, name) == getattr(problem_class, name)
            assert problem.flops <= MOST_FLOPS[problem_class.precision]
            limited = problem_class.most_m or problem_class.large_k
            assert problem_class.has(problem) or limited or min(problem_class.multiples) != 8
            assert problem_class.most_m >= problem.M or not problem_class.most_m
            if problem_class.large_k:
                assert DECOMPOSE_K_THRESHOLD * max(problem.M, problem.N) <= problem.K
            if problem_class.large_k and problem_class.op == "mm":
                assert k_splits(problem) or problem.K < 256
            if problem_class.small_k:
                assert problem.K <= 256
            if problem_class.large_n:
                assert 2**15 <= problem.N < 2**18 + 8
                assert problem.M <= 512
            if problem_class.n_is_one:
                assert problem.N == 1
            if problem_class.large_batch:
                assert problem.B >= 64
                assert max(problem.M, problem.N, problem.K) < 512


def test_a_unit_is_the_largest_power_of_two_that_divides_a_size():
    scores = ProblemClass("bmm", "bfloat16", "nt", large_batch=True, n_unit=1)
    values = ProblemClass("bmm", "float16", "nn", k_unit=4)
    words = ProblemClass("mm", "bfloat16", "nt", n_unit=2)
    assert all(p.N % 2 == 1 and p.K % 8 == 0 for p in scores.problems(20, seed=1))
    assert all(p.K % 8 == 4 and p.N % 8 == 0 for p in values.problems(20, seed=1))
    assert all(p.N % 4 == 2 and p.K % 8 == 0 for p in words.problems(20, seed=1))
    assert scores.has(MMShape("bmm", 49, 49, 32, 1536, "bfloat16", transpose_b=True))
    assert not scores.has(MMShape("bmm", 48, 48, 32, 1536, "bfloat16", transpose_b=True))
    assert values.has(MMShape("bmm", 1500, 64, 1500, 80, "float16"))
    assert not values.has(MMShape("bmm", 1500, 64, 1504, 80, "float16"))
    assert not values.has(MMShape("bmm", 1500, 60, 1500, 80, "float16"))
    assert words.has(MMShape("mm", 64, 30522, 768, dtype="bfloat16", transpose_b=True))
    assert not words.has(MMShape("mm", 64, 50257, 768, dtype="bfloat16", transpose_b=True))


def test_a_problem_of_another_kind_does_not_belong():
    problem_class = ProblemClass("addmm", "float16", "nt")
    problem = MMShape("addmm", 77, 320, 640, dtype="float16", transpose_b=True)
    assert problem_class.has(problem)
    for other in (
        replace(problem, bias="matrix"),
        replace(problem, transpose_b=False),
        replace(problem, K=641),
        replace(problem, M=100_000, N=80_000),
        MMShape("addmm", 77, 320, 640, dtype="bfloat16", transpose_b=True),
    ):
        assert not problem_class.has(other)
