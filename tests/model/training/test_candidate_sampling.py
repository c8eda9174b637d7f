"""The candidates a network is taught or told again: those it would choose among."""

import os
import signal

import numpy as np
import pytest

from torch_diode.candidates import candidate_space
from torch_diode.model.checkpoint import load_network
from torch_diode.model.features.names import TEMPLATES
from torch_diode.model.registry import ModelRegistry, shipped_folders
from torch_diode.model.serving.inference import NumpyNetwork
from torch_diode.model.training import candidate_sampling
from torch_diode.model.training.candidate_sampling import sample_candidates
from torch_diode.types.candidate import ATEN, Candidate
from torch_diode.types.problem import MMShape

BEST, OTHERS = 16, 10
PROBLEMS = [MMShape("mm", m, 512, k, dtype="bfloat16") for m in (8, 100, 4000) for k in (64, 4096)]


@pytest.fixture(scope="module")
def network(h200):
    pointer = ModelRegistry(shipped_folders()).find("matmul", h200)
    metadata, found = load_network(pointer.path)
    return metadata.kind, found


def near(network, h200, seed=0, templates=(ATEN, *TEMPLATES)):
    return sample_candidates(PROBLEMS, *network, h200, templates, BEST, OTHERS, seed)


def test_the_first_are_there_and_some_others_and_aten(network, h200):
    kind, weights = network
    served = NumpyNetwork(kind, {n: v.numpy() for n, v in weights.state_dict().items()})
    for problem, some in zip(PROBLEMS, near(network, h200), strict=True):
        space = candidate_space(problem, h200, (ATEN, *TEMPLATES))
        times = served.predict_us(problem, space, h200)
        first = {space[int(row)] for row in np.argsort(times)[:BEST]}
        assert first | {Candidate(ATEN)} <= set(some)
        assert BEST + 1 < len(some) < BEST + 5 * OTHERS


def test_a_seed_draws_other_others(network, h200):
    once, again, other = (near(network, h200, seed) for seed in (0, 0, 1))
    assert [list(some) for some in once] == [list(some) for some in again]
    assert [list(some) for some in once] != [list(some) for some in other]


@pytest.fixture
def several_processes(monkeypatch):
    monkeypatch.setattr(candidate_sampling, "_PROBLEMS_PER_PROCESS", 2)
    monkeypatch.setattr(os, "cpu_count", lambda: 3)


@pytest.mark.usefixtures("several_processes")
def test_a_process_that_is_killed_costs_time_only(network, h200, monkeypatch):
    this, ask = os.getpid(), candidate_sampling._Sampler.__call__

    def dying(self, number, problem):
        if os.getpid() != this:
            os.kill(os.getpid(), signal.SIGKILL)
        return ask(self, number, problem)

    together = near(network, h200)
    monkeypatch.setattr(candidate_sampling._Sampler, "__call__", dying)
    assert [list(some) for some in near(network, h200)] == [list(some) for some in together]


@pytest.mark.usefixtures("several_processes")
def test_many_processes_find_what_one_does(network, h200, monkeypatch):
    ask = candidate_sampling._Sampler.__call__
    monkeypatch.setattr(
        candidate_sampling._Sampler, "__call__", lambda *given: (ask(*given), os.getpid())
    )
    together = near(network, h200)
    assert os.getpid() not in {pid for _, pid in together}
    monkeypatch.undo()
    assert [list(some) for some, _ in together] == [list(some) for some in near(network, h200)]
