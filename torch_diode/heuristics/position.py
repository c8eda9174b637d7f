"""Finding one candidate, as an object, among many, as arrays."""

from __future__ import annotations

from torch_diode.candidates.gpu.k_loop import as_in_space
from torch_diode.heuristics.candidate_key import packed, packed_one
from torch_diode.types.candidate import Candidate
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.problem import MMShape


def position_of(candidate: Candidate, candidates: Candidates, problem: MMShape) -> int | None:
    """Where a candidate stands among those of a problem, under its own name or as the space calls
    its kernel; None where it is not among them."""
    found = _position(candidate, candidates)
    if found is None and (other := as_in_space(candidate, problem)) != candidate:
        found = _position(other, candidates)
    return found


def _position(candidate: Candidate, candidates: Candidates) -> int | None:
    if candidate.template not in candidates.templates:
        return None
    template = candidates.templates.index(candidate.template)
    keys = packed(candidates)
    first, second = packed_one(candidate)
    for row in (keys.first == first).nonzero()[0].tolist():
        if keys.second[row] == second and candidates.template[row] == template:
            return int(row)
    return None
