from dataclasses import replace

import pytest

from tests.samples import H200
from torch_diode import Candidate, Candidates, MMShape, TritonGEMMConfig
from torch_diode.collection import plan
from torch_diode.collection.kernels.cpp import CpuKernels
from torch_diode.hardware import detect
from torch_diode.types.candidate import ATEN
from torch_diode.types.errors import EmptySelectionError, InvalidValueError

EVEN = [MMShape("mm", 64 * i, 128, 256) for i in range(1, 6)]
ODD = [MMShape("mm", 63, 127, 255 + 2 * i) for i in range(3)]


def test_problems_of_one_kind_are_grouped():
    mixed = [EVEN[0], ODD[0], EVEN[1], ODD[1], EVEN[2]]
    groups = plan.plan(mixed, plan.libraries(detect("cpu")), CpuKernels())
    assert [[p for p, _ in group.tasks] for group in groups] == [EVEN[:3], ODD[:2]]
    assert [group.name for group in groups] == ["mm bfloat16 nn /1/8/8", "mm bfloat16 nn /1/1/1"]


@pytest.mark.parametrize(
    ("problem", "change"),
    [
        (EVEN[0], {"op": "addmm", "bias": "vector"}),
        (EVEN[0], {"dtype": "float16", "out_dtype": "float16"}),
        (EVEN[0], {"transpose_b": True}),
        (EVEN[0], {"N": 129}),
        (MMShape("addmm", 64, 128, 256), {"bias": "matrix"}),
        (MMShape("mm", 64, 128, 256, dtype="float32"), {"tf32": True}),
    ],
)
def test_problems_with_other_kernels_are_of_another_kind(problem, change):
    assert plan.kind_of(problem) != plan.kind_of(replace(problem, **change))


def test_how_a_size_divides_counts_only_where_memory_is_read_along_it():
    def kind(m, k, layout):
        return plan.kind_of(
            MMShape("mm", m, 64, k, transpose_a=layout[0] == "t", transpose_b=layout[1] == "t")
        )

    assert kind(64, 64, "nn") == kind(63, 64, "nn") != kind(64, 63, "nn")
    assert kind(64, 64, "tn") == kind(64, 63, "tn") != kind(63, 64, "tn")


def test_exhaustive_is_the_whole_space_without_splits_of_k():
    found = plan.exhaustive(H200)(MMShape("mm", 64, 64, 16384))
    assert set(found.template.tolist()) == {
        found.templates.index(name) for name in ("aten", "triton::mm", "triton::mm_persistent_tma")
    }


def test_a_list_is_cut_to_what_the_chip_can_run_and_keeps_aten():
    fits = Candidate("triton::mm", TritonGEMMConfig(64, 64, 32, num_stages=3, num_warps=4))
    too_large = Candidate("triton::mm", TritonGEMMConfig(256, 256, 128, num_stages=5, num_warps=8))
    rule = plan.listed(lambda problem: Candidates.of([fits, too_large]), H200)
    assert set(rule(MMShape("mm", 512, 512, 512))) == {Candidate("aten"), fits}


def test_a_list_names_a_kernel_without_a_loop_by_any_number_of_stages():
    short = MMShape("mm", 512, 512, 64)
    wanted = Candidate("triton::mm", TritonGEMMConfig(64, 64, 64, 8, 4, 4))
    found = list(plan.listed(lambda _: Candidates.of([wanted]), H200)(short))
    assert [c.template for c in found] == [ATEN, "triton::mm"]
    assert found[1] == replace(wanted, config=replace(wanted.config, num_stages=1))


def test_no_problems_are_refused():
    with pytest.raises(EmptySelectionError, match="got none"):
        plan.check_problems([], H200)


def test_a_problem_too_large_for_the_memory_is_refused():
    with pytest.raises(InvalidValueError, match=r"needs .* GB; nvidia-h200 has .* GB"):
        plan.check_problems([EVEN[0], MMShape("mm", 2**18, 2**18, 64)], H200)


@pytest.mark.parametrize(
    "problem",
    [MMShape("mm", 8, 8, 8, dtype="int8"), MMShape("mm", 8, 8, 8, out_dtype="float32")],
    ids=str,
)
def test_a_dtype_the_sweep_does_not_know_is_refused(problem):
    with pytest.raises(InvalidValueError, match="choose with --dtypes"):
        plan.check_problems([problem], H200)
