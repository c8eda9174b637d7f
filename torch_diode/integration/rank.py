"""Ranking on request: what would run, and how fast, with no compile and no GPU needed."""

from __future__ import annotations

from collections.abc import Iterable

from torch_diode.candidates import candidate_space
from torch_diode.hardware import detect, known
from torch_diode.heuristics.base import Heuristic
from torch_diode.integration import default_heuristic, settings
from torch_diode.types import validation
from torch_diode.types.candidate import Candidate
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.errors import EmptySelectionError
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape
from torch_diode.types.timing import Prediction


def rank(
    problem: MMShape,
    candidates: Iterable[Candidate] | None = None,
    hardware: Hardware | str | None = None,
    heuristic: Heuristic | None = None,
    top: int | None = None,
) -> list[Prediction]:
    """The candidates of a problem with predicted microseconds, best first, at most `top`.

    Without candidates all that are feasible; without hardware this machine's; without a heuristic
    the default one for the hardware. Times are None where the heuristic names none. Raises where
    it abstains, and says why.
    """
    validation.instance("rank", "problem", problem, MMShape)
    if heuristic is not None:
        validation.instance("rank", "heuristic", heuristic, Heuristic)
    if top is not None:
        validation.whole_number("rank", "top", top, low=1)
    given = None if candidates is None else _given(candidates)
    if not isinstance(hardware, Hardware):
        hardware = detect() if hardware is None else known(hardware)
    heuristic = heuristic or default_heuristic.default_heuristic(
        hardware, settings.from_environment()
    )
    if heuristic is None:
        why = default_heuristic.NO_MODEL
        raise EmptySelectionError(f"rank: {hardware.name}: {why}; give a heuristic")
    space = candidate_space(problem, hardware) if given is None else given
    ranking = heuristic.rank(problem, space, hardware)
    if ranking is None:
        raise EmptySelectionError(f"rank: {heuristic.why_abstained(problem, space, hardware)}")
    return ranking.predictions(space, top)


def _given(candidates: Iterable[Candidate]) -> Candidates:
    if isinstance(candidates, Candidates):
        return candidates
    items = list(candidates)
    for item in items:
        validation.instance("rank", "candidates", item, Candidate)
    return Candidates.of(items)
