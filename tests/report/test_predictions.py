from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest

from tests import samples
from torch_diode.heuristics.analytical import AnalyticalHeuristic
from torch_diode.report.predictions import analytical_times, timings_of
from torch_diode.types.candidate import Candidate
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.dataset import Dataset
from torch_diode.types.errors import EmptySelectionError, InvalidValueError


def test_every_timed_row_is_there_once_with_its_problem(dataset, timings):
    expected = sorted(
        (timing.problem, str(timing.candidate), timing.time_us)
        for timing in dataset
        if timing.time_us is not None
    )
    found = sorted(
        (timings.problems[p], str(timings.candidates[row]), float(timings.measured[row]))
        for p in range(len(timings))
        for row in range(timings.starts[p], timings.starts[p + 1])
    )
    assert [row[:2] for row in found] == [row[:2] for row in expected]
    np.testing.assert_allclose([r[2] for r in found], [r[2] for r in expected], rtol=1e-6)


def test_a_row_is_predicted_as_a_compile_would_predict_it(timings, model, hardware):
    for number in (0, len(timings) // 2):
        rows = timings.rows_of(number)
        listed = Candidates.of([timings.candidates[row] for row in range(rows.start, rows.stop)])
        times, _ = model.wrapper.predict_us(timings.problems[number], listed, hardware)
        np.testing.assert_allclose(timings.predicted[rows], times, rtol=1e-4)


def test_a_problem_the_model_was_not_trained_on_is_not_supported(model, hardware):
    double = replace(samples.LINEAR, dtype="float64", out_dtype="float64")
    rows = [
        replace(timing, problem=problem)
        for problem in (samples.LINEAR, double)
        for timing in samples.TIMINGS[:3]
    ]
    found = timings_of(Dataset.from_timings(rows), hardware, model)
    assert found.supported.tolist() == [True, False]
    assert found.reasons == {"the model was not trained on mm in float64": 1}


@pytest.mark.filterwarnings("ignore:overflow")
def test_a_model_that_predicts_nonsense_is_cut_or_refused(dataset, model, hardware):
    part = dataset.take(dataset.problems.ids < 2)
    wild = deepcopy(model.network)
    weights = wild.state_dict()
    wild.load_state_dict({**weights, "out.bias": weights["out.bias"] + 1e4})
    found = timings_of(part, hardware, replace(model, network=wild))
    assert np.isfinite(found.predicted).all()
    assert found.predicted.max() > 1e4
    wild.load_state_dict({**weights, "out.bias": weights["out.bias"] * np.nan})
    with pytest.raises(InvalidValueError, match="got a predicted time that is not a number"):
        timings_of(part, hardware, replace(model, network=wild))


def test_rows_that_did_not_run_or_no_model_knows_do_not_count(model, hardware):
    failed = replace(samples.TIMINGS[1], time_us=None, status="out_of_resources")
    unknown = Candidate("triton::unheard_of", samples.LARGE.config)
    other = replace(samples.TIMINGS[0], candidate=unknown)
    both = [samples.TIMINGS[0], samples.TIMINGS[2]]
    kept = timings_of(Dataset.from_timings([*both, failed, other]), hardware, model)
    assert list(kept.candidates) == [samples.ATEN, samples.LARGE]
    with pytest.raises(EmptySelectionError, match="got no timing of ATen"):
        timings_of(Dataset.from_timings([failed, other]), hardware, model)


def test_a_problem_with_one_candidate_is_left_out_and_counted(model, hardware):
    rows = [samples.TIMINGS[0], samples.TIMINGS[2], samples.TIMINGS[3]]
    found = timings_of(Dataset.from_timings(rows), hardware, model)
    assert (found.problems, found.alone) == ([samples.LINEAR], 1)
    with pytest.raises(EmptySelectionError, match="got one timed candidate a problem"):
        timings_of(Dataset.from_timings(rows[1:]), hardware, model)


def test_the_analytical_heuristic_is_asked_about_the_wanted_problems_only(timings, hardware):
    wanted = np.zeros(len(timings), bool)
    wanted[3] = True
    times = analytical_times(timings, wanted, hardware)
    rows = timings.rows_of(3)
    listed = timings.candidates.take(np.arange(rows.start, rows.stop))
    expected = AnalyticalHeuristic().predict_us(timings.problems[3], listed, hardware)
    np.testing.assert_allclose(times[rows], expected)
    assert np.isnan(np.delete(times, np.arange(rows.start, rows.stop))).all()
