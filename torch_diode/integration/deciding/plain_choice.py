"""What a plain compile runs where nothing follows a matmul, worked out without Inductor."""

from __future__ import annotations

from torch_diode.candidates import candidate_space
from torch_diode.candidates.gpu.eligibility import plain_templates
from torch_diode.heuristics import policy
from torch_diode.heuristics.base import Heuristic
from torch_diode.types.candidate import Candidate
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape
from torch_diode.types.ranking import Ranking


def plain_ranking(
    problem: MMShape, heuristic: Heuristic, hardware: Hardware
) -> tuple[Candidates, Ranking] | None:
    """All that a plain compile may choose, and a heuristic's word on it, sizes compiled in; None
    where it abstains."""
    space = candidate_space(problem, hardware, plain_templates(problem))
    ranking = heuristic.rank(problem, space, hardware)
    if ranking is None:
        return None
    return space, policy.adjust_for_compile(ranking, space, fixed_sizes=True, extra_us=0.0)


def runs_alone(space: Candidates, ranking: Ranking) -> Candidate:
    """What then runs without a benchmark: the best, or ATen where that is not sure enough to be
    faster."""
    return space[int(policy.single_choice_order(ranking, space)[0])]
