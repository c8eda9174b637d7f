"""Plans for a CPU, from problems as a trace has them."""

from torch_diode.hardware import known, with_threads
from torch_diode.integration.capture.trace import TracedProblem
from torch_diode.tuning.plan import Plan, make_plan
from torch_diode.types.candidate import ATEN, CPP_GEMM, PACKED
from torch_diode.types.dataset import Dataset
from torch_diode.types.problem import MMShape
from torch_diode.types.timing import Timing

CPU = with_threads(known("amd-zen5"), 2)
SMALL, LARGE = (MMShape("mm", 8, n, n, dtype="float32") for n in (64, 1024))


def traced(problem: MMShape, constant: bool = False, dynamic: str = "") -> TracedProblem:
    return TracedProblem(problem, "cpu", 2, constant, dynamic)


def planned(counts: dict[TracedProblem, int], quick: bool = False, whole: bool = False) -> Plan:
    return make_plan(CPU, counts, quick=quick, whole=whole)


def timed(plan: Plan, *templates: str) -> Dataset:
    (task,) = plan.tasks
    return Dataset.from_timings(
        Timing(CPU.name, task.problem, candidate, 1.0, threads=2)
        for candidate in task.candidates
        if not templates or candidate.template in templates
    )


def test_the_heaviest_come_first_and_each_problem_once():
    plan = planned({traced(SMALL): 3, traced(LARGE): 2, traced(LARGE, constant=True): 5})
    assert [(task.problem, task.count) for task in plan.tasks] == [(LARGE, 7), (SMALL, 3)]
    assert {(use.problem, use.frozen, use.count) for use in plan.uses} == {
        (SMALL, False, 3),
        (LARGE, False, 2),
        (LARGE, True, 5),
    }


def test_packed_weights_and_micro_kernels_are_timed_where_a_weight_is_constant():
    (plain,) = planned({traced(LARGE): 1}).tasks
    assert not {*PACKED, CPP_GEMM} & {*plain.candidates.templates}
    for counts, whole in (({traced(LARGE, constant=True): 1}, False), ({traced(LARGE): 1}, True)):
        (task,) = planned(counts, whole=whole).tasks
        assert {ATEN, *PACKED, CPP_GEMM} <= {*task.candidates.templates}


def test_nothing_is_compiled_for_a_dynamic_size_or_in_a_hurry():
    dynamic = {traced(LARGE, constant=True, dynamic="M 2-512"): 1}
    for plan in (planned(dynamic), planned({traced(LARGE, constant=True): 1}, quick=True)):
        (task,) = plan.tasks
        assert CPP_GEMM not in task.candidates.templates
        assert plan.seconds(plan.tasks, 1) < 10


def test_what_cannot_be_timed_is_left_out_with_the_reason():
    huge = MMShape("mm", 2**20, 2**20, 8, dtype="float32")
    plan = planned({traced(huge): 2, traced(SMALL): 1})
    assert [task.problem for task in plan.tasks] == [SMALL]
    assert plan.left_out == {"float32 to float32, or beyond the memory, cannot be timed": 1}


def test_only_what_is_not_measured_with_all_its_candidates_waits():
    plan = planned({traced(LARGE): 1})
    assert plan.without(None) == plan.tasks
    assert plan.without(timed(plan, ATEN)) == plan.tasks
    assert plan.without(timed(plan)) == ()
    assert plan.seconds((), 2) == 0.0
