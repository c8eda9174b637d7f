"""Two integers say which config it is."""

from __future__ import annotations

import gc

import numpy as np

from torch_diode.candidates import candidate_space
from torch_diode.hardware import known
from torch_diode.heuristics import candidate_key as module
from torch_diode.heuristics.candidate_key import packed, packed_one
from torch_diode.types.candidate import Candidate, TritonGEMMConfig
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.problem import MMShape

H200 = known("nvidia-h200")


def test_one_candidate_and_many_have_the_same_integers() -> None:
    space = candidate_space(MMShape("mm", 64, 64, 8192), H200)
    found = packed(space)
    pairs = list(zip(found.first.tolist(), found.second.tolist(), strict=True))
    assert pairs == [packed_one(candidate) for candidate in space]


def test_no_two_configs_share_them() -> None:
    space = candidate_space(MMShape("mm", 512, 512, 512), H200, ("aten", "triton::mm"))
    assert len({packed_one(candidate) for candidate in space}) == len(space)


def test_the_greatest_values_fit() -> None:
    config = TritonGEMMConfig(4096, 4096, 4096, 1024, 32, 64, 16, 64, 8)
    greatest = Candidate("triton::mm", config)
    found = packed(Candidates.of([greatest, Candidate("decompose_k", split_k=65536)]))
    assert (int(found.first[0]), int(found.second[0])) == packed_one(greatest)
    assert min(found.first.min(), found.second.min()) >= 0
    assert int(found.second[1]) >> 23 == 65536


def test_they_are_kept_no_longer_than_the_candidates() -> None:
    candidates = candidate_space(MMShape("mm", 64, 64, 64), H200).take(np.arange(5))
    assert packed(candidates) is packed(candidates)
    before = len(module._kept)
    del candidates
    gc.collect()
    assert len(module._kept) == before - 1
