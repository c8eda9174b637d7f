from __future__ import annotations

import numpy as np
import pytest

from torch_diode.integration.capture.default_configs import default_candidates
from torch_diode.integration.capture.default_lists import listed_rows
from torch_diode.model.evaluation.regret import noise_floor, regret_arrays
from torch_diode.report import regret
from torch_diode.report.predictions import timings_of
from torch_diode.report.regret import KS, regrets_of
from torch_diode.types.candidate import ATEN
from torch_diode.types.errors import MissingPartError


def everything(timings):
    return np.ones(len(timings), bool)


@pytest.fixture(scope="module")
def found(timings, hardware):
    return regrets_of(timings, everything(timings), hardware, None)


def test_the_models_regret_is_what_evaluation_says(timings, found):
    for k in (1, 5):
        given = (timings.group, timings.measured, timings.predicted, (k,))
        problems, expected = regret_arrays(*given)
        assert found.problems.tolist() == problems.tolist()
        assert found.model[:, k - 1] == pytest.approx(expected[:, 0])


def test_regret_falls_with_k_and_never_below_one(found):
    for values in (found.model, found.analytical):
        assert (values >= 1.0).all()
        assert (np.diff(values, axis=1) <= 0).all()


def test_aten_alone_is_its_time_over_the_best(timings, found):
    for place, number in enumerate(found.problems.tolist()):
        rows = timings.rows_of(number)
        times, aten = timings.measured[rows], timings.is_aten[rows]
        assert found.aten[place] == pytest.approx(times[aten].min() / times.min())


def test_a_problem_without_aten_has_no_regret_of_aten(dataset, hardware, model):
    template, names = dataset.codes("template")
    triton = dataset.take(template != names.index(ATEN))
    part = triton.take(triton.problems.ids < 3)
    timings = timings_of(part, hardware, model)
    found = regrets_of(timings, everything(timings), hardware, None)
    assert np.isnan(found.aten).all()
    assert np.isfinite(found.model).all()


def test_noise_is_the_noise_floor_before_its_mean(timings, found):
    each = found.noise
    floor = noise_floor(timings.group, timings.measured, timings.errors, KS)
    np.testing.assert_allclose(np.exp(np.log(each).mean(axis=0)), floor)


def test_only_scored_problems_have_regrets(timings, hardware):
    scored = np.arange(len(timings)) % 3 == 1
    found = regrets_of(timings, scored, hardware, None)
    assert found.problems.tolist() == np.flatnonzero(scored).tolist()
    assert found.model.shape == found.noise.shape == (scored.sum(), len(KS))


def test_slow_baselines_are_asked_about_a_sample(timings, hardware, monkeypatch):
    monkeypatch.setattr(regret, "ANALYTICAL_SAMPLE", 5)
    found = regrets_of(timings, everything(timings), hardware, None)
    assert np.isfinite(found.analytical[:, 0]).sum() == 5
    assert np.isfinite(found.model).all()


def test_inductors_own_list_is_scored_by_the_best_of_it_that_was_timed(dataset, timings, hardware):
    def in_list(rows):
        found = listed_rows(dataset, rows, hardware)
        return found.rows, found.coverage

    scored = np.arange(len(timings)) < 3
    found = regrets_of(timings, scored, hardware, in_list)
    assert found.default_fault == ""
    assert 0 < found.coverage < 1
    for place in range(3):
        rows = timings.rows_of(place)
        times = {timings.candidates[r]: timings.measured[r] for r in range(rows.start, rows.stop)}
        listed = set(default_candidates(timings.problems[place], hardware))
        met = [time for candidate, time in times.items() if candidate in listed]
        assert found.default[place] == pytest.approx(min(met) / min(times.values()))


def test_where_there_is_no_list_the_reason_is_kept(timings, hardware):
    def none(rows):
        raise MissingPartError("got torch 2.9")

    found = regrets_of(timings, everything(timings), hardware, none)
    assert np.isnan(found.default).all()
    assert found.default_fault == "got torch 2.9"
