from hypothesis import given

from tests import samples
from tests.strategies import datasets
from torch_diode.toolkit import dataset_summary
from torch_diode.types.dataset import Dataset


@given(datasets())
def test_operations_count_what_the_rows_say(dataset):
    seen = {}
    for t in dataset:
        seen.setdefault((t.hardware, t.problem.op), []).append(t)
    found = {(o.hardware, o.op): o for o in dataset_summary.operations(dataset)}
    assert set(found) == set(seen)
    for name, rows in seen.items():
        ran = [t for t in rows if t.time_us is not None]
        assert found[name].problems == len({t.problem for t in rows})
        assert (found[name].configs, found[name].failed) == (len(ran), len(rows) - len(ran))


@given(datasets())
def test_problems_name_the_fastest_that_ran(dataset):
    seen = {}
    for t in dataset:
        seen.setdefault((t.hardware, t.problem), []).append(t)
    found = dataset_summary.problems(dataset)
    assert [(item.hardware, item.example.problem) for item in found] == list(seen)
    for item in found:
        rows = seen[item.hardware, item.example.problem]
        times = [t.time_us for t in rows if t.time_us is not None]
        assert (item.configs, item.failed) == (len(times), len(rows) - len(times))
        assert (item.fastest.time_us if item.fastest else None) == min(times, default=None)


def test_a_limit_cuts_the_list():
    assert len(dataset_summary.problems(samples.dataset(), limit=2)) == 2
    assert dataset_summary.problems(Dataset.empty()) == []
