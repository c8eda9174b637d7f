"""Finding one candidate, as an object, among many, as arrays."""

from __future__ import annotations

import numpy as np

from torch_diode.types.candidate import CONFIG_FIELDS, Candidate
from torch_diode.types.candidates import Candidates

_NO_CONFIG = dict.fromkeys(CONFIG_FIELDS, 0)
_TELLING_FIELDS = ("block_m", "block_n", "block_k", "num_stages")


def position_of(candidate: Candidate, candidates: Candidates) -> int | None:
    """Where a candidate stands among others; None where it is not among them."""
    if candidate.template not in candidates.templates:
        return None
    fields = candidates.fields
    config = _NO_CONFIG if candidate.config is None else vars(candidate.config)
    mask = candidates.template == candidates.templates.index(candidate.template)
    for name in _TELLING_FIELDS:
        mask &= fields[name] == config[name]
    for row in np.flatnonzero(mask):
        if fields["split_k"][row] == candidate.split_k and all(
            fields[name][row] == config[name] for name in CONFIG_FIELDS
        ):
            return int(row)
    return None
