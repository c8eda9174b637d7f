"""A CPU's network in numpy: torch's numbers, for whatever candidates are on offer."""

import numpy as np
import pytest
import torch

from tests.cpu_timings import LABELS
from torch_diode import Candidate, Candidates, Hardware, MMShape, ModelHeuristic
from torch_diode.hardware import find
from torch_diode.heuristics.testing.conformance import check_heuristic
from torch_diode.model.checkpoint import load_model, load_network
from torch_diode.model.features.cpu import cpu_features
from torch_diode.model.features.problem_arrays import OneProblem, ProblemArrays
from torch_diode.model.features.roofline import roofline_us
from torch_diode.types.candidate import CppGEMMConfig

ZEN5 = find("amd-zen5", 2)
PROBLEM = MMShape("mm", 64, 512, 384, dtype="float32", transpose_b=True)
UNKNOWN = Candidate("cpp::gemm", CppGEMMConfig(64, 64))


def candidate(template, block_m, block_n):
    return Candidate(template, CppGEMMConfig(block_m, block_n) if block_m else None)


KNOWN = [candidate(*label) for label in LABELS]


@pytest.fixture(scope="module")
def model(cpu_model):
    return load_model(cpu_model)


def test_its_predictions_are_torchs(model, cpu_model):
    metadata, network = load_network(cpu_model)
    features = torch.from_numpy(cpu_features(ProblemArrays.of(PROBLEM, 2), ZEN5))
    with torch.no_grad():
        members = network(features)
        expected = members.mean(0)[0].numpy()
        deviation = network.log_sigma(features, members).exp()[0].numpy()
    times, sigma = model.predict_us(PROBLEM, Candidates.of(KNOWN), ZEN5)
    places = [metadata.labels.index(str(known)) for known in KNOWN]
    roofline = float(roofline_us(OneProblem(PROBLEM, 2), ZEN5))
    assert times == pytest.approx(np.exp(expected[places]) * roofline, rel=1e-3)
    assert sigma == pytest.approx(deviation[places], rel=1e-3)


def test_a_candidate_has_the_same_time_whatever_else_is_on_offer(model):
    whole, _ = model.predict_us(PROBLEM, Candidates.of(KNOWN), ZEN5)
    part, _ = model.predict_us(PROBLEM, Candidates.of([KNOWN[3], KNOWN[1]]), ZEN5)
    assert part.tolist() == whole[[3, 1]].tolist()


def test_which_candidates_it_knows_is_said_only_where_it_does_not_know_all(model):
    assert model.known(Candidates.of(KNOWN)) is None
    assert model.known(Candidates.of([UNKNOWN, *KNOWN])).tolist() == [False, *[True] * len(KNOWN)]


def test_an_unknown_candidate_is_not_ranked(model):
    heuristic = ModelHeuristic(model)
    ranking = heuristic.rank(PROBLEM, Candidates.of([UNKNOWN, *KNOWN]), ZEN5)
    alone = heuristic.rank(PROBLEM, Candidates.of(KNOWN), ZEN5)
    assert ranking.order.tolist() == (alone.order + 1).tolist()
    assert np.isnan(ranking.predicted_us[0])
    only = Candidates.of([UNKNOWN])
    assert heuristic.rank(PROBLEM, only, ZEN5) is None
    assert heuristic.why_abstained(PROBLEM, only, ZEN5) == "the model knows none of the candidates"


def test_it_conforms(model):
    for threads in (2, 64):
        check_heuristic(ModelHeuristic(model), find("amd-zen5", threads)).raise_if_failed()


def test_it_abstains_for_what_it_was_not_trained_on(model):
    def reason(problem, hardware=ZEN5):
        return model.supports(problem, hardware)

    assert reason(PROBLEM) is None
    assert "trained with 1, 2 threads, here are 64" in reason(PROBLEM, find("amd-zen5", 64))
    zen4 = Hardware("amd-zen4", "cpu", "x86_64", threads=2)
    assert "the model is of amd-zen5" in reason(PROBLEM, zen4)
    half = MMShape("mm", 64, 512, 384, dtype="bfloat16")
    assert "not trained on mm in bfloat16" in reason(half)
    both = MMShape("mm", 8, 8, 8, dtype="float32", transpose_a=True, transpose_b=True)
    assert "layout tt" in reason(both)
    assert "far beyond" in reason(MMShape("mm", 1 << 24, 8, 8, dtype="float32"))
