import base64
import json

import numpy as np
import pytest

from torch_diode.model.evaluation.regret import regret_arrays, scores, time_error


def test_it_is_plain_json(data):
    assert json.loads(json.dumps(data, allow_nan=False)) == data


def test_the_curve_is_what_evaluation_says(predicted, data):
    values = regret_arrays(predicted.group, predicted.measured, predicted.predicted, range(1, 21))[
        1
    ]
    expected = scores(values, range(1, 21))
    found = data["curves"]["model"]
    assert [score["k"] for score in found] == list(range(1, 21))
    for score, wanted in zip(found, expected, strict=True):
        assert score == pytest.approx(wanted.to_dict(), abs=1e-5)


def test_the_grid_counts_every_timing_of_its_part_once(predicted, data):
    density = data["density"]
    parts = {part["name"]: part for part in density["parts"]}
    assert list(parts) == ["all candidates", "within 1.5× of the best", "ATen", "Triton"]
    for name, mask in (("ATen", predicted.is_aten), ("Triton", ~predicted.is_aten)):
        counts = np.frombuffer(base64.b64decode(parts[name]["counts"]), "<u4")
        assert len(counts) == density["bins"] ** 2
        assert counts.sum() == mask.sum()
        expected = time_error(predicted.measured[mask], predicted.predicted[mask])
        assert parts[name]["error"] == pytest.approx(vars(expected))


def test_the_worst_decisions_are_the_worst_and_say_what_was_picked(predicted, data):
    worst = data["worst"]
    values = regret_arrays(predicted.group, predicted.measured, predicted.predicted, (1,))[1][:, 0]
    assert [entry["regret"] for entry in worst] == pytest.approx(
        sorted(values[values > 1], reverse=True)[:50], abs=1e-4
    )
    keys = [problem.key for problem in predicted.problems]
    for entry in worst[:10]:
        rows = predicted.rows_of(keys.index(entry["problem"]))
        pick = rows.start + int(np.argmin(predicted.predicted[rows]))
        assert entry["pick"]["candidate"] == str(predicted.candidates[pick])
        assert entry["pick"]["measured"] == pytest.approx(predicted.measured[pick], abs=1e-3)
        assert entry["best"]["measured"] == pytest.approx(predicted.measured[rows].min(), abs=1e-3)
        assert entry["aten"]["candidate"] == "aten"
        ratio = entry["pick"]["measured"] / entry["best"]["measured"]
        assert ratio == pytest.approx(entry["regret"], rel=1e-3)


def test_slices_hold_their_problems_and_their_baselines(predicted, data):
    slices = {entry["name"]: entry for entry in data["slices"]}
    assert next(iter(slices)) == "all"
    assert slices["all"]["problems"] == len(predicted)
    assert slices["all"]["at_1"] == pytest.approx(data["curves"]["model"][0]["geomean"], abs=1e-4)
    assert slices["all"]["aten"] == data["curves"]["aten"]
    ops = [entry["problems"] for name, entry in slices.items() if name.startswith("op=")]
    counted = sum(p.op == "mm" for p in predicted.problems)
    assert slices["op=mm"]["problems"] == counted
    assert min(ops) > 0
