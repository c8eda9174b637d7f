import re

import pytest

from torch_diode.types.errors import InvalidValueError
from torch_diode.types.solution import Solution

BLOCKS = {"block_m": 64, "block_n": 128, "block_k": 32}
OTHER = {"block_m": 16, "block_n": 16, "block_k": 16, "num_warps": 8}


def test_configs_per_problem_speak_about_that_problem_only():
    item = {"M": 512, "N": 4096, "K": 4096, **BLOCKS}
    solution = Solution.from_dict({"name": "best", "configs": [item, {**item, "op": "addmm"}]})
    sizes = (512, 4096, 4096)
    assert solution.name == "best"
    assert [(c.op, c.sizes) for c in solution.configs] == [(None, sizes), ("addmm", sizes)]


def test_one_list_speaks_about_every_problem():
    solution = Solution.from_dict({"config": [BLOCKS, OTHER]})
    assert [(c.op, c.sizes) for c in solution.configs] == [(None, None)] * 2


def test_a_list_per_operation_speaks_about_that_operation():
    solution = Solution.from_dict({"mm": {"config": [BLOCKS]}, "addmm": {"config": [OTHER]}})
    assert [(c.op, dict(c.fields)) for c in solution.configs] == [("mm", BLOCKS), ("addmm", OTHER)]


def test_keys_of_other_tools_are_passed_over():
    listed = {"config": [BLOCKS], "version": 1, "default": {"config": [OTHER]}, "made_by": "x"}
    for data in (listed, {"mm": listed, "version": 1, "default": listed}):
        assert [dict(c.fields) for c in Solution.from_dict(data).configs] == [BLOCKS]


def test_what_the_problem_decides_is_passed_over():
    old = {**BLOCKS, "name": "mm", "grid": "(1,)", "EVEN_K": True, "ACC_TYPE": "tl.float32"}
    assert dict(Solution.from_dict({"config": [old]}).configs[0].fields) == BLOCKS


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ([], "got list; expected an object"),
        ({}, "got no config"),
        ({"config": []}, "got no config"),
        ({"config": {}}, "expected a list"),
        ({"config": [5]}, "got int; expected an object"),
        ({"config": [{"block_m": 64}]}, "got no field 'block_n'"),
        ({"config": [{**BLOCKS, "stages": 2}]}, "unknown field 'stages'"),
        ({"config": [{**BLOCKS, "num_warps": 3}]}, "num_warps: got 3"),
        ({"configs": [BLOCKS]}, "got no M, N or K"),
        ({"configs": [{**BLOCKS, "M": 0, "N": 1, "K": 1}]}, "M, N, K: got 0"),
        ({"configs": [{**BLOCKS, "M": 1, "N": 1, "K": 1, "op": "x"}]}, "op: got 'x'"),
        ({"mm": [BLOCKS]}, "solution mm: got list"),
        ({"matmul": {"config": [BLOCKS]}}, "got no config; expected at least one, as configs"),
        ({"name": 5, "config": [BLOCKS]}, "solution.name: got 5"),
    ],
)
def test_a_bad_solution_is_refused_with_the_reason(data, said):
    with pytest.raises(InvalidValueError, match=re.escape(said)):
        Solution.from_dict(data)
