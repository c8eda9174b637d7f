"""Ranking without a compile, and without a GPU."""

from __future__ import annotations

from collections.abc import Iterable

from torch_diode.candidates import candidate_space
from torch_diode.candidates.cpu.libraries import PLAIN
from torch_diode.candidates.gpu.eligibility import plain_templates
from torch_diode.hardware import detect, find
from torch_diode.heuristics import policy
from torch_diode.heuristics.base import Heuristic
from torch_diode.integration import default_heuristic, settings
from torch_diode.types import validation
from torch_diode.types.candidate import Candidate
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.errors import EmptySelectionError
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape
from torch_diode.types.ranking import Ranking
from torch_diode.types.timing import Prediction


def rank(
    problem: MMShape,
    candidates: Iterable[Candidate] | None = None,
    hardware: Hardware | str | None = None,
    heuristic: Heuristic | None = None,
    top: int | None = None,
) -> list[Prediction]:
    """The candidates of a problem with predicted microseconds, best first, at most `top`.

    Defaults: all feasible candidates, this machine's hardware, and the default heuristic for the
    hardware. Times are None where the heuristic gives only an order. Raises where it abstains, with
    the reason.
    """
    validation.instance("rank", "problem", problem, MMShape)
    if heuristic is not None:
        validation.instance("rank", "heuristic", heuristic, Heuristic)
    if top is not None:
        validation.whole_number("rank", "top", top, low=1)
    given = None if candidates is None else _given(candidates)
    if not isinstance(hardware, Hardware):
        hardware = detect() if hardware is None else find(hardware)
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


def plain_ranking(
    problem: MMShape, heuristic: Heuristic, hardware: Hardware
) -> tuple[Candidates, Ranking] | None:
    """The candidates of a plain compile with static sizes, and their ranking; None where the
    heuristic abstains."""
    templates = PLAIN if hardware.kind == "cpu" else plain_templates(problem)
    space = candidate_space(problem, hardware, templates)
    ranking = heuristic.rank(problem, space, hardware)
    if ranking is None:
        return None
    return space, policy.adjust_for_compile(ranking, space, fixed_sizes=True, extra_us=0.0)


def single_choice(space: Candidates, ranking: Ranking) -> Candidate:
    """The candidate that a plain compile runs, unbenchmarked: the best, or ATen where that is not
    certain enough to be faster."""
    return space[int(policy.single_choice_order(ranking, space)[0])]
