import numpy as np

from torch_diode import Candidates, validate
from torch_diode.model.registry import load_registered
from torch_diode.report.predictions import PredictedTimings


def test_every_timed_row_is_there_once_with_its_problem(dataset, predicted):
    expected = sorted(
        (timing.problem, str(timing.candidate), timing.time_us)
        for timing in dataset
        if timing.time_us is not None
    )
    rows = sorted(
        (predicted.problems[p], str(predicted.candidates[row]), float(predicted.measured[row]))
        for p in range(len(predicted))
        for row in range(predicted.starts[p], predicted.starts[p + 1])
    )
    assert [row[:2] for row in rows] == [row[:2] for row in expected]
    np.testing.assert_allclose([r[2] for r in rows], [r[2] for r in expected], rtol=1e-6)


def test_a_row_is_predicted_as_a_compile_would_predict_it(predicted, h200):
    model = load_registered("matmul", h200)
    for number in (0, len(predicted) // 2):
        rows = predicted.rows_of(number)
        listed = Candidates.of([predicted.candidates[row] for row in range(rows.start, rows.stop)])
        times, _ = model.predict_us(predicted.problems[number], listed, h200)
        np.testing.assert_allclose(predicted.predicted[rows], times, rtol=1e-4)


def test_problems_that_are_not_scored_are_predicted_too(dataset, predicted):
    validation = validate("shipped", dataset, score="held-out", baselines=False)
    part = PredictedTimings.of(validation)
    assert 0 < part.scored.sum() == len(validation.evaluated.problems) < len(part) == len(predicted)
    np.testing.assert_allclose(part.predicted, predicted.predicted, rtol=1e-4)
