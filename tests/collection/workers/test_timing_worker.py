"""What a timing process does with an order, here without the process."""

from __future__ import annotations

import pytest

from torch_diode.collection.bench import Bench, Order, Setting
from torch_diode.collection.cpu_timer import cpu_library
from torch_diode.collection.crew import WORKING, Mark
from torch_diode.hardware import detect
from torch_diode.types.candidate import Candidate, TritonGEMMConfig
from torch_diode.types.candidates import Candidates
from torch_diode.types.errors import MissingPartError
from torch_diode.types.problem import MMShape

PROBLEM = MMShape("mm", 24, 40, 56, dtype="float32")
ATEN, TRITON = Candidate("aten"), Candidate("triton::mm", TritonGEMMConfig(16, 16, 16))
BOTH = Candidates.of([ATEN, TRITON])


@pytest.fixture
def bench():
    setting = Setting(cpu_library(), detect("cpu"), {"torch": "2.13.0"})
    return Bench(setting, Mark(), seed=0)


def statuses(bench: Bench, order: Order) -> dict[Candidate, str]:
    return {timing.candidate: timing.status for timing in bench.answer(order).dataset}


def test_every_candidate_has_an_answer(bench):
    assert statuses(bench, Order(PROBLEM, BOTH)) == {ATEN: "ok", TRITON: "out_of_resources"}


@pytest.mark.parametrize("start", [0, 1, 2])
def test_care_changes_nothing_in_the_answer(bench, start):
    order = Order(PROBLEM, BOTH, careful=True, start=start)
    assert statuses(bench, order) == {ATEN: "ok", TRITON: "out_of_resources"}
    assert bench._mark.get() == WORKING


def test_what_has_failed_is_recorded_and_not_run_again(bench):
    order = Order(PROBLEM, BOTH, careful=True, start=1, failed=(0,))
    assert statuses(bench, order) == {ATEN: "failed", TRITON: "out_of_resources"}
    only = Order(PROBLEM, Candidates.of([ATEN]), careful=True, start=1, failed=(0,))
    assert statuses(bench, only) == {ATEN: "failed"}


def test_a_dtype_without_a_kernel_is_named(bench):
    problem = MMShape("mm", 8, 8, 8, dtype="float8_e5m2")
    with pytest.raises(MissingPartError, match="this device does not run it"):
        bench.answer(Order(problem, Candidates.of([ATEN])))
