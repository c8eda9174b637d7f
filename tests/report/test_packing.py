import base64

import numpy as np
import pytest

from torch_diode.report import packing
from torch_diode.report.packing import pack


def decoded(data, name, kind):
    return np.frombuffer(base64.b64decode(data[name]), kind)


def unpacked(data):
    """Measured and predicted times by problem and candidate, unpacked as the page's script does."""
    code = decoded(data, "code", "<u2")
    times = {
        name: np.exp(data["low"] + data["step"] * decoded(data, name, "<u2"))
        for name in ("measured", "predicted")
    }
    ends = np.cumsum(data["kept"])
    found = {}
    for p, end in enumerate(ends):
        kind = data["kinds"][data["kind"][p]]
        sizes = [data[name][p] for name in ("BMNK" if kind["batched"] else "MNK")]
        key = f"{kind['op']}:{'x'.join(map(str, sizes))}:{kind['tail']}"
        found[key] = {}
        for row in range(end - data["kept"][p], end):
            template, *_, config = data["candidates"][code[row]]
            name = f"{data['templates'][template]} {config}".strip()
            found[key][name] = (times["measured"][row], times["predicted"][row])
    return found


def test_what_is_packed_comes_out_as_it_went_in(predicted):
    found = unpacked(pack(predicted))
    assert list(found) == [problem.key for problem in predicted.problems]
    for number, problem in enumerate(predicted.problems):
        rows = predicted.rows_of(number)
        assert len(found[problem.key]) == rows.stop - rows.start
        for row in range(rows.start, rows.stop):
            pair = found[problem.key][str(predicted.candidates[row])]
            expected = (predicted.measured[row], predicted.predicted[row])
            assert pair == pytest.approx(expected, rel=3e-4)


def test_too_many_timings_leave_the_ones_that_matter(predicted, monkeypatch):
    monkeypatch.setattr(packing, "MOST_TIMINGS", 20 * len(predicted))
    data = pack(predicted)
    assert sum(data["kept"]) <= 20 * len(predicted)
    assert max(data["kept"]) == data["each"]
    assert data["all"] == np.diff(predicted.starts).tolist()
    found = unpacked(data)
    for number, problem in enumerate(predicted.problems):
        rows = predicted.rows_of(number)
        names = [str(predicted.candidates[row]) for row in range(rows.start, rows.stop)]
        best, pick = np.argmin(predicted.measured[rows]), np.argmin(predicted.predicted[rows])
        assert {"aten", names[best], names[pick]} <= set(found[problem.key])


def test_too_many_problems_leave_a_sample(predicted, monkeypatch):
    monkeypatch.setattr(packing, "MOST_PROBLEMS", 10)
    data = pack(predicted)
    assert len(data["kind"]) == len(data["kept"]) == len(data["M"]) == 10
    assert data["of_problems"] == len(predicted)
    assert set(unpacked(data)) < {problem.key for problem in predicted.problems}
