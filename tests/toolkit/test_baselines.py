from __future__ import annotations

import numpy as np
import pytest

from torch_diode.files.datasets import read_dataset
from torch_diode.hardware import known
from torch_diode.heuristics import AnalyticalHeuristic
from torch_diode.model.features.table import feature_table
from torch_diode.toolkit.baselines import ANALYTICAL, DEFAULT_LIST, baselines
from torch_diode.types.candidate_arrays import Candidates

H200 = known("nvidia-h200")


@pytest.fixture(scope="module")
def found(timings):
    dataset = read_dataset(timings / "apart.msgpack")
    table = feature_table(dataset, H200)
    return dataset, table, baselines(table, dataset, H200)


def test_the_analytical_regret_is_the_heuristics_own(found):
    dataset, table, held = found
    timed = [dataset[int(row)] for row in table.rows[table.group == 3]]
    space = Candidates.of(timing.candidate for timing in timed)
    ranking = AnalyticalHeuristic().rank(timed[0].problem, space, H200)
    times = np.array([timing.time_us for timing in timed])
    expected = times[ranking.order[0]] / times.min()
    assert held.regrets[ANALYTICAL][3, 0] == pytest.approx(expected, rel=1e-4)


def test_the_list_is_at_least_as_good_as_aten_which_is_in_it(found):
    _, table, held = found
    best = np.full(len(table.problem), np.inf)
    np.minimum.at(best, table.group, table.time_us)
    aten = table.is_aten
    alone = np.full(len(best), np.nan)
    alone[table.group[aten]] = table.time_us[aten] / best[table.group[aten]]
    assert (held.regrets[DEFAULT_LIST][:, 0] <= alone + 1e-6).all()


def test_what_was_not_timed_is_said(found):
    _, _, held = found
    assert any("of its configs were timed" in note for note in held.notes)
