"""A learned timing model as a heuristic."""

from __future__ import annotations

from dataclasses import replace
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

    # Optional: `open_sizes`, true if the times are of kernels that get their sizes as arguments;
    # `known(candidates)`, a mask of those it can predict, or None if it can predict all;
    # `why_shortlists(hardware)`, as a heuristic has; `loses_to_aten(problem)`, the kind of its
    # problems on which ATen alone was better in its evaluation, or an empty text.


class ModelHeuristic(Heuristic):
    """Orders candidates by the times a model predicts."""

    steady = True

    def __init__(self, model: TimingModel, name: str = "model", note: str = "") -> None:
        self.model = model
        self.name = name
        self.note = note
        """Caveat reported with each answer, such as another torch release."""

    def rank(self, problem: MMShape, candidates: Candidates, hardware: Hardware) -> Ranking | None:
        """All candidates the model knows, by predicted time; None where it does not support the
        problem or knows none of them."""
        if not len(candidates) or self.model.supports(problem, hardware) is not None:
            return None
        known = self._known(candidates)
        if known is not None:
            return self._rank_known(problem, candidates, hardware, known)
        times, sigma = self.model.predict_us(problem, candidates, hardware)
        if np.shape(times) != (len(candidates),):
            raise InvalidValueError(
                f"{self.name}: got predicted times of shape {np.shape(times)}; expected one for "
                f"each of {len(candidates)} candidates"
            )
        open_sizes = getattr(self.model, "open_sizes", False)
        ranking = Ranking.by_time(times, self.name, sigma, candidates, self.note, open_sizes)
        shortlist = self.why_shortlists(hardware) or self._loss(problem)
        return replace(ranking, shortlist=shortlist) if shortlist else ranking

    def why_shortlists(self, hardware: Hardware) -> str:
        """The model's own reason."""
        ask = getattr(self.model, "why_shortlists", None)
        return "" if ask is None else str(ask(hardware))

    def _loss(self, problem: MMShape) -> str:
        """The reason to only shortlist problems like this one."""
        ask = getattr(self.model, "loses_to_aten", None)
        kind = "" if ask is None else ask(problem)
        return f"ATen alone was better on its held-out problems ({kind})" if kind else ""

    def _known(self, candidates: Candidates) -> npt.NDArray[np.bool_] | None:
        """Mask of the candidates the model knows; None where it knows all."""
        ask = getattr(self.model, "known", None)
        known: npt.NDArray[np.bool_] | None = None if ask is None else ask(candidates)
        return None if known is None or known.all() else known

    def _rank_known(
        self,
        problem: MMShape,
        candidates: Candidates,
        hardware: Hardware,
        known: npt.NDArray[np.bool_],
    ) -> Ranking | None:
        """The order of the known candidates; the others have no time."""
        rows = np.flatnonzero(known)
        ranking = self.rank(problem, candidates.take(rows), hardware) if len(rows) else None
        if ranking is None:
            return None
        times, sigma = np.full((2, len(candidates)), np.nan)
        times[rows] = ranking.predicted_us
        if ranking.sigma is not None:
            sigma[rows] = ranking.sigma
        errors = None if ranking.sigma is None else sigma
        return replace(ranking, order=rows[ranking.order], predicted_us=times, sigma=errors)

    def why_abstained(self, problem: MMShape, candidates: Candidates, hardware: Hardware) -> str:
        """The model's own reason."""
        if not len(candidates):
            return "there are no candidates"
        reason = self.model.supports(problem, hardware)
        known = self._known(candidates)
        if reason is None and known is not None and not known.any():
            return "the model knows none of the candidates"
        return reason or ""

    def fingerprint(self) -> str:
        """The model's, under this heuristic's name."""
        return digest("model", self.name, self.model.fingerprint())
