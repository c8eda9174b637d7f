"""Candidates near a network's choice, for distillation and replay.

A network chooses among the candidates it ranks first, so its times have to be right there: samples
are those, and a few others.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from torch_diode.candidates import candidate_space
from torch_diode.model.serving.inference import NumpyNetwork
from torch_diode.types.candidate import ATEN

if TYPE_CHECKING:
    from torch_diode.model.networks.timing_models import TimingNetwork
    from torch_diode.types.candidate_arrays import Candidates
    from torch_diode.types.hardware import Hardware
    from torch_diode.types.problem import MMShape

_PROBLEMS_PER_PROCESS = 1_000
"""Minimum that makes starting another process worthwhile."""
_CHUNK = 64


@dataclass(frozen=True, eq=False)
class _Sampler:
    """Draws the candidates of one problem."""

    network: NumpyNetwork
    hardware: Hardware
    templates: tuple[str, ...]
    best: int
    others: int
    seed: int

    def __call__(self, number: int, problem: MMShape) -> Candidates:
        space = candidate_space(problem, self.hardware, self.templates)
        if len(space) <= self.best:
            return space
        drawn = np.random.default_rng((self.seed, number)).random(len(space))
        chosen = drawn < self.others / len(space)
        times = self.network.predict_us(problem, space, self.hardware)
        chosen[np.argpartition(times, self.best)[: self.best]] = True
        return space.take(chosen | space.is_template(ATEN))


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
    """Select of each problem the `best` candidates by the network, about `others` more at random,
    and ATen if it is among the templates. The result does not depend on the number of processes."""
    weights = {name: value.cpu().numpy() for name, value in network.state_dict().items()}
    sample = _Sampler(NumpyNetwork(kind, weights), hardware, tuple(templates), best, others, seed)
    processes = min(os.cpu_count() or 1, len(problems) // _PROBLEMS_PER_PROCESS)
    if processes > 1 and "fork" in multiprocessing.get_all_start_methods():
        # Forked processes have the weights already and need not import torch again.
        fork = multiprocessing.get_context("fork")
        pool = ProcessPoolExecutor(processes, fork, _set_sampler, (sample,))
        with contextlib.suppress(BrokenProcessPool), pool:  # one was killed: continue in this one
            return list(pool.map(_sample, enumerate(problems), chunksize=_CHUNK))
    return [sample(number, problem) for number, problem in enumerate(problems)]


_sampler: _Sampler | None = None
"""Sampler of a process of the pool."""


def _set_sampler(sampler: _Sampler) -> None:
    global _sampler
    _sampler = sampler


def _sample(numbered: tuple[int, MMShape]) -> Candidates:
    assert _sampler is not None
    return _sampler(*numbered)
