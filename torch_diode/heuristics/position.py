"""Finding one candidate, as an object, among many, as arrays."""

from __future__ import annotations

from torch_diode.heuristics.packed import packed, packed_one
from torch_diode.types.candidate import Candidate
from torch_diode.types.candidates import Candidates


def position_of(candidate: Candidate, candidates: Candidates) -> int | None:
    """Where a candidate stands among others; None where it is not among them."""
    if candidate.template not in candidates.templates:
        return None
    template = candidates.templates.index(candidate.template)
    keys = packed(candidates)
    first, second = packed_one(candidate)
    for row in (keys.first == first).nonzero()[0].tolist():
        if keys.second[row] == second and candidates.template[row] == template:
            return int(row)
    return None
