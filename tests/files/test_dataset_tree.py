import copy
import json

import pytest
from hypothesis import given

from tests import samples
from tests.strategies import datasets
from torch_diode.files.dataset_tree import from_tree, to_tree
from torch_diode.types.errors import InvalidValueError


@given(datasets())
def test_a_tree_reads_as_the_dataset_it_was_made_of(dataset):
    again = from_tree(json.loads(json.dumps(to_tree(dataset))))
    assert again == dataset
    assert set(again) == set(dataset)


def test_a_tree_nests_hardware_operation_problem_and_timed_configs():
    tree = to_tree(samples.dataset())
    assert list(tree["hardware"]) == ["nvidia-h200", "nvidia-h100"]
    entry = tree["hardware"]["nvidia-h200"]["mm"][0]
    assert (entry["problem"]["M"], entry["problem"]["transpose_b"]) == (512, True)
    assert entry["measured"] == {"method": "sweep", "torch": "2.13.0", "triton": ""}
    assert entry["timings"][0] == {
        "template": "aten",
        "time_us": 20.5,
        "spread": 0.01,
        "repeats": 5,
    }


def put(tree, path, value):
    changed = copy.deepcopy(tree)
    inner = changed
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    return changed


ENTRY = ("hardware", "nvidia-h200", "mm", 0)
ROW = (*ENTRY, "timings", 0)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("hardware",), [], "hardware: got list"),
        (("hardware", "bad\nname"), {"m\nm": [5]}, r"'bad\nname' 'm\nm' entry: got int"),
        (("hardware", "NVIDIA H200"), {"mm": []}, None),
        (ENTRY, 5, "entry: got int"),
        ((*ENTRY, "problem"), [], "expected a problem"),
        ((*ENTRY, "problem", "op"), "bmm", "without its op"),
        ((*ENTRY, "problem", "M"), 0, "MMShape.M: got 0"),
        ((*ENTRY, "measured"), {"clock": 1}, "unknown field 'clock'"),
        ((*ENTRY, "timings"), {}, "timings: got dict; expected a list"),
        ((*ENTRY, "extra"), 1, "unknown field 'extra'"),
        (ROW, 5, "timings: got a list of something else"),
        ((*ROW, "colour"), 1, "unknown field 'colour'"),
        ((*ROW, "time_us"), -1.0, "microseconds above zero"),
        ((*ROW, "time_us"), 10**400, "time_us"),
        ((*ROW, "template"), "\ud800", "template"),
        ((*ROW, "status"), "slow", "column 'status': got 'slow'"),
        ((*ENTRY, "timings", 1), {"template": "aten", "time_us": 1.0}, "same timing twice"),
        (("version",), 3, "reads up to 2"),
        (("provenance",), {"a": "b"}, "provenance"),
    ],
)
def test_a_bad_tree_is_refused_with_the_reason_in_one_line(path, value, said):
    tree = put(to_tree(samples.dataset()), path, value)
    if said is None:
        assert len(from_tree(tree)) == len(samples.dataset())
        return
    with pytest.raises(InvalidValueError) as fault:
        from_tree(tree)
    assert said in str(fault.value)
    assert "\n" not in str(fault.value)
