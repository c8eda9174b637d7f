"""Candidates as integers, to find and to sort them by: far quicker than field by field."""

from __future__ import annotations

from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from torch_diode.types.candidate import CONFIG_FIELDS, Candidate
from torch_diode.types.candidate_arrays import Candidates

# How many bits a field's greatest value takes; each of the two packs fits an integer.
_PACKS = (
    {"block_m": 13, "block_n": 13, "block_k": 13, "group_m": 11, "num_stages": 6},
    {"split_k": 17, "num_warps": 7, "waves_per_eu": 5, "matrix_instr_nonkdim": 7, "kpack": 4},
)
_NO_CONFIG = dict.fromkeys(CONFIG_FIELDS, 0)

Keys = npt.NDArray[np.int64]


class Packed(NamedTuple):
    """Two integers a candidate, which hold its config and its split; the template is not there."""

    first: Keys
    second: Keys


_kept: WeakKeyDictionary[Candidates, Packed] = WeakKeyDictionary()


def packed(candidates: Candidates) -> Packed:
    """The integers of some candidates, kept as long as they are."""
    found = _kept.get(candidates)
    if found is None:
        found = _kept[candidates] = Packed(*(_pack(bits, candidates) for bits in _PACKS))
    return found


def packed_one(candidate: Candidate) -> tuple[int, int]:
    """The same two integers of one candidate."""
    config = _NO_CONFIG if candidate.config is None else vars(candidate.config)
    first, second = _PACKS
    key = 0
    for name, bits in first.items():
        key = key << bits | config[name]
    other = candidate.split_k
    for name, bits in list(second.items())[1:]:
        other = other << bits | config[name]
    return key, other


def _pack(pack: dict[str, int], candidates: Candidates) -> Keys:
    key = np.zeros(len(candidates), np.int64)
    for name, bits in pack.items():
        key <<= bits
        key |= candidates.fields[name]
    return key
