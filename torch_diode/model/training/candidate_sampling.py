"""Candidates near a network's choice: it chooses among those it ranks first, so that is where its
times have to be right. What it is taught, or told again, is of them and of some others."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass

import numpy as np

from torch_diode.candidates import candidate_space
from torch_diode.model.networks.timing_models import TimingNetwork
from torch_diode.model.serving.inference import NumpyNetwork
from torch_diode.types.candidate import ATEN
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape

_WORTH_A_PROCESS = 1_000
"""Problems; with fewer, starting another takes longer than it saves."""
_HANDED_OUT = 64


@dataclass(frozen=True, eq=False)
class _Ask:
    """What each problem's candidates follow from."""

    served: NumpyNetwork
    hardware: Hardware
    templates: tuple[str, ...]
    best: int
    others: int
    seed: int

    def __call__(self, number: int, problem: MMShape) -> Candidates:
        """The candidates of the problem that has this number."""
        space = candidate_space(problem, self.hardware, self.templates)
        if len(space) <= self.best:
            return space
        drawn = np.random.default_rng((self.seed, number)).random(len(space))
        taken = drawn < self.others / len(space)
        times = self.served.predict_us(problem, space, self.hardware)
        taken[np.argpartition(times, self.best)[: self.best]] = True
        return space.take(taken | space.is_template(ATEN))


def sample_candidates(
    problems: Sequence[MMShape],
    kind: str,
    network: TimingNetwork,
    hardware: Hardware,
    templates: Sequence[str],
    best: int,
    others: int,
    seed: int,
) -> list[Candidates]:
    """Of each problem the candidates the network thinks best, about so many others, and ATen where
    it is among the templates. The same whether one process asks or many."""
    weights = {name: value.cpu().numpy() for name, value in network.state_dict().items()}
    ask = _Ask(NumpyNetwork(kind, weights), hardware, tuple(templates), best, others, seed)
    processes = min(os.cpu_count() or 1, len(problems) // _WORTH_A_PROCESS)
    if processes > 1 and "fork" in multiprocessing.get_all_start_methods():
        # Forked, the processes have the weights already and need not import torch again.
        fork = multiprocessing.get_context("fork")
        pool = ProcessPoolExecutor(processes, fork, _begin, (ask,))
        with contextlib.suppress(BrokenProcessPool), pool:  # one killed: it may have been too many
            return list(pool.map(_asked, enumerate(problems), chunksize=_HANDED_OUT))
    return [ask(number, problem) for number, problem in enumerate(problems)]


_ask: _Ask | None = None
"""In a process of the pool: how it asks."""


def _begin(ask: _Ask) -> None:
    global _ask
    _ask = ask


def _asked(numbered: tuple[int, MMShape]) -> Candidates:
    assert _ask is not None
    return _ask(*numbered)
