import re

import pytest
from hypothesis import given

from tests.strategies import candidates, configs
from torch_diode.types.candidate import Candidate, TritonGEMMConfig
from torch_diode.types.errors import InvalidValueError


@given(candidates() | configs().map(lambda config: Candidate("triton::mm", config)))
def test_a_candidate_survives_json(candidate):
    assert Candidate.from_dict(candidate.to_dict()) == candidate


@given(candidates(), candidates())
def test_two_candidates_read_the_same_only_if_they_are_one(one, other):
    assert (str(one) == str(other)) == (one == other)
    assert (one != other) or hash(one) == hash(other)


def test_json_leaves_out_what_only_amd_has():
    data = TritonGEMMConfig(64, 128, 32).to_dict()
    assert list(data) == ["block_m", "block_n", "block_k", "group_m", "num_stages", "num_warps"]
    assert TritonGEMMConfig(64, 128, 32, kpack=2).to_dict()["kpack"] == 2


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"block_m": 48}, "block_m: got 48; expected a power of two"),
        ({"num_warps": 3}, "num_warps: got 3"),
        ({"group_m": 0}, "group_m: got 0; expected a whole number from 1 to 1024"),
        ({"num_stages": 33}, "num_stages: got 33"),
        ({"waves_per_eu": 17}, "waves_per_eu"),
        ({"kpack": -1}, "kpack: got -1"),
    ],
)
def test_a_bad_field_of_a_config_is_refused_by_name(change, said):
    with pytest.raises(InvalidValueError, match=re.escape(said)):
        TritonGEMMConfig(**{"block_m": 16, "block_n": 16, "block_k": 16, **change})


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"template": "triton::mm"}, "expected a TritonGEMMConfig for triton::mm"),
        ({"template": "aten", "block_m": 16, "block_n": 16, "block_k": 16}, "None for aten"),
        ({"template": "decompose_k"}, "expected 2 or more for decompose_k"),
        ({"template": "aten", "split_k": 2}, "expected 1 for aten"),
        ({"template": "os.system('x')"}, "Candidate.template"),
        ({"template": "triton::mm", "block_m": 16}, "got no field 'block_n'"),
        ({"template": "aten", "stages": 3}, "unknown field 'stages'"),
        ({"block_m": 16}, "got no field 'template'"),
    ],
)
def test_a_bad_candidate_is_refused_with_the_reason(fields, said):
    with pytest.raises(InvalidValueError, match="expected a TritonGEMMConfig or None"):
        Candidate("triton::mm", {"block_m": 16})
    with pytest.raises(InvalidValueError, match=re.escape(said)):
        Candidate.from_dict(fields)
