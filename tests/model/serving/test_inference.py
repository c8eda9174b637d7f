"""numpy says what torch says, and quickly."""

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from torch_diode import Candidate, Candidates, MMShape
from torch_diode.candidates.space import candidate_space
from torch_diode.model.evaluation.scoring import predict_times
from torch_diode.model.networks.timing_models import build_network
from torch_diode.model.serving.inference import NumpyNetwork

KINDS = ("base", "deep")
FEW = 150
"""Candidates that all pass the prefilter; `test_prefilter` has more."""


def made(kind, table):
    """A network with real norms and weights large enough that every part of it matters."""
    torch.manual_seed(3)
    network = build_network(kind, {"hidden": 16, "layers": 3, "aten_hidden": 8})
    with torch.no_grad():
        for value in network.parameters():
            value.add_(0.05 * torch.randn_like(value))
        network.problem_norm.fit(torch.from_numpy(table.problem))
        network.config_norm.fit(torch.from_numpy(table.config[~table.is_aten]))
        both = np.concatenate([table.problem, table.vendor], axis=1)
        network.aten.norm.fit(torch.from_numpy(both))
        network.aten.shift.fill_(-0.07)
    return network.eval()


def exported(network):
    return NumpyNetwork(network.kind, {k: v.numpy() for k, v in network.state_dict().items()})


@pytest.mark.parametrize("kind", KINDS)
def test_numpy_and_torch_agree_on_real_rows(kind, dataset, table, h200):
    network = made(kind, table)
    expected = predict_times(network, table)
    ours = exported(network)
    for number in range(0, len(table.problem), 23):
        rows = np.flatnonzero(table.group == number)[-FEW:]
        candidates = Candidates.of(dataset[int(row)].candidate for row in table.rows[rows])
        problem = dataset.problem(int(table.rows[rows[0]]))
        times = ours.predict_us(problem, candidates, h200)
        assert np.allclose(times, expected[rows], rtol=2e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_a_candidate_is_worth_the_same_in_any_company(kind, table, h200):
    problem = MMShape("mm", M=500, N=512, K=512)
    space = candidate_space(problem, h200)
    ours = exported(made(kind, table))
    few = space.take(np.linspace(0, len(space) - 1, FEW).astype(np.int64))
    whole = ours.predict_us(problem, few, h200)
    some = np.arange(0, FEW, 7)
    assert np.allclose(ours.predict_us(problem, few.take(some), h200), whole[some], rtol=1e-4)


def test_what_is_kept_of_candidates_does_not_leak_into_another_problem(table, h200):
    first, second = MMShape("mm", M=512, N=512, K=512), MMShape("mm", M=4096, N=512, K=512)
    other = MMShape("mm", M=512, N=512, K=512, dtype="float32")
    space = candidate_space(first, h200)
    kept = exported(made("deep", table))
    kept.predict_us(first, space, h200)
    for problem in (second, other):
        fresh = exported(made("deep", table))
        expected = fresh.predict_us(problem, space, h200)
        assert np.array_equal(kept.predict_us(problem, space, h200), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_threads_do_not_write_into_one_another(kind, table, h200):
    ours = exported(made(kind, table))
    problems = [MMShape("mm", M=256 + 64 * i, N=512, K=768) for i in range(24)]
    asked = [(problem, candidate_space(problem, h200)) for problem in problems]
    alone = [ours.predict_us(problem, space, h200) for problem, space in asked]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda pair: ours.predict_us(*pair, h200), asked * 4))
    assert all(np.array_equal(a, b) for a, b in zip(together, alone * 4, strict=True))


def test_a_template_never_seen_comes_last(table, h200):
    problem = MMShape("mm", M=64, N=64, K=8192)
    space = candidate_space(problem, h200)
    assert "decompose_k" in space.templates
    times = exported(made("deep", table)).predict_us(problem, space, h200)
    unseen = space.is_template("decompose_k")
    assert times[unseen].min() > times[~unseen].max()
    alone = Candidates.of([Candidate("decompose_k", split_k=4)])
    assert np.isfinite(exported(made("deep", table)).predict_us(problem, alone, h200)).all()


def test_a_thousand_candidates_take_about_a_millisecond(table, h200):
    """Loosely bounded: the machine may be busy. `benchmarks/ranking_latency.py` measures it."""
    problem = MMShape("mm", M=512, N=4096, K=4096, transpose_b=True)
    space = candidate_space(problem, h200).take(np.arange(1000))
    shape = {"hidden": 64, "layers": 2}
    weights = build_network("deep", shape).state_dict()
    ours = NumpyNetwork("deep", {name: value.numpy() for name, value in weights.items()})
    ours.predict_us(problem, space, h200)
    taken = []
    for _ in range(30):
        begun = time.perf_counter()
        ours.predict_us(problem, space, h200)
        taken.append(time.perf_counter() - begun)
    assert min(taken) < 5e-3
