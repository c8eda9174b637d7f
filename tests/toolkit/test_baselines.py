import numpy as np
import pytest

from torch_diode.files.datasets import read_dataset
from torch_diode.hardware import known
from torch_diode.heuristics import AnalyticalHeuristic
from torch_diode.integration.capture import default_lists
from torch_diode.integration.capture.default_configs import default_candidates
from torch_diode.model.features.table import feature_table
from torch_diode.toolkit.baselines import ANALYTICAL, DEFAULT_LIST, compute_baselines
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.errors import MissingPartError


@pytest.fixture(scope="module")
def data(timings, h200):
    dataset = read_dataset(timings / "apart.msgpack")
    return feature_table(dataset, h200), dataset, h200


@pytest.fixture(scope="module")
def baselines(data):
    return compute_baselines(*data)


def timed(data, number):
    table, dataset, _ = data
    return [dataset[int(row)] for row in table.rows[table.group == number]]


def test_the_analytical_regret_is_the_heuristics_own(data, baselines, h200):
    rows = timed(data, 3)
    space = Candidates.of(timing.candidate for timing in rows)
    ranking = AnalyticalHeuristic().rank(rows[0].problem, space, h200)
    times = np.array([timing.time_us for timing in rows])
    expected = times[ranking.order[0]] / times.min()
    assert baselines.regrets[ANALYTICAL][3, 0] == pytest.approx(expected, rel=1e-4)


def test_the_default_list_counts_with_its_best_config_that_was_timed(data, baselines, h200):
    for number in range(3):
        times = {timing.candidate: timing.time_us for timing in timed(data, number)}
        listed = set(default_candidates(timed(data, number)[0].problem, h200))
        expected = min(t for c, t in times.items() if c in listed) / min(times.values())
        assert baselines.regrets[DEFAULT_LIST][number, 0] == pytest.approx(expected, rel=1e-6)
    table = data[0]
    aten = table.subset_regrets(table.is_aten)
    assert (baselines.regrets[DEFAULT_LIST][:, 0] <= aten + 1e-6).all(), "ATen is in the list"
    assert 0 < baselines.coverage < 1
    assert any("of its configs were timed" in note for note in baselines.notes)


def test_each_k_has_a_column_and_regret_falls_with_k(data):
    ks = range(1, 21)
    baselines = compute_baselines(*data, ks, default_list=False)
    for values in (baselines.regrets[ANALYTICAL], baselines.noise):
        assert values.shape[1] == len(ks)
        assert (values[:, 1:] <= values[:, :-1]).all()
    assert baselines.noise_floor == sorted(baselines.noise_floor, reverse=True)
    assert DEFAULT_LIST not in baselines.regrets


def test_the_reason_for_a_missing_default_list_is_kept(data, monkeypatch):
    def missing(*_):
        raise MissingPartError("got torch 2.9")

    monkeypatch.setattr(default_lists, "listed_rows", missing)
    baselines = compute_baselines(*data)
    assert baselines.missing_list == "got torch 2.9"
    assert baselines.notes == ("no default list to compare with: got torch 2.9",)
    amd = compute_baselines(*data[:2], known("amd-instinct-mi300x"))
    assert "read for NVIDIA chips" in amd.missing_list
