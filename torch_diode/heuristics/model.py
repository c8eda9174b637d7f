"""A learned timing model as a heuristic."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from torch_diode.heuristics.base import Heuristic, digest
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.errors import InvalidValueError
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape
from torch_diode.types.ranking import Ranking

Times = npt.NDArray[np.floating]


class TimingModel(Protocol):
    """The interface of a model that can be used as a heuristic, such as `ModelWrapper`."""

    def predict_us(
        self, problem: MMShape, candidates: Candidates, hardware: Hardware
    ) -> tuple[Times, Times | None]:
        """Microseconds of every candidate, in their order, and the model's error estimates as
        fractions, if it has any."""

    def supports(self, problem: MMShape, hardware: Hardware) -> str | None:
        """None where the model applies; otherwise the reason to abstain."""

    def fingerprint(self) -> str:
        """Text that changes with the weights, the features, and anything else times depend on."""

    # Optional: `open_sizes`, true if the times are of kernels that get their sizes as arguments.


class ModelHeuristic(Heuristic):
    """Orders candidates by the times a model predicts."""

    steady = True

    def __init__(self, model: TimingModel, name: str = "model", note: str = "") -> None:
        self.model = model
        self.name = name
        self.note = note
        """Caveat reported with each answer, such as another torch release."""

    def rank(self, problem: MMShape, candidates: Candidates, hardware: Hardware) -> Ranking | None:
        """All candidates by predicted time; None where the model does not support the problem."""
        if not len(candidates) or self.model.supports(problem, hardware) is not None:
            return None
        times, sigma = self.model.predict_us(problem, candidates, hardware)
        if np.shape(times) != (len(candidates),):
            raise InvalidValueError(
                f"{self.name}: got predicted times of shape {np.shape(times)}; expected one for "
                f"each of {len(candidates)} candidates"
            )
        open_sizes = getattr(self.model, "open_sizes", False)
        return Ranking.by_time(times, self.name, sigma, candidates, self.note, open_sizes)

    def why_abstained(self, problem: MMShape, candidates: Candidates, hardware: Hardware) -> str:
        """The model's own reason."""
        if not len(candidates):
            return "there are no candidates"
        return self.model.supports(problem, hardware) or ""

    def fingerprint(self) -> str:
        """The model's, under this heuristic's name."""
        return digest("model", self.name, self.model.fingerprint())
