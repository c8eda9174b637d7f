import json

import pytest

from tests.samples import LINEAR
from torch_diode.files.solutions import read_solution
from torch_diode.types.errors import FileFaultError

BLOCKS = {"block_m": 64, "block_n": 128, "block_k": 32}


@pytest.mark.parametrize(
    "data",
    [
        {"name": "best", "configs": [{"M": 512, "N": 4096, "K": 4096, **BLOCKS}]},
        {"config": [BLOCKS]},
        {"mm": {"config": [BLOCKS]}, "addmm": {"config": [BLOCKS]}},
    ],
)
def test_each_of_the_three_forms_reads(tmp_path, data):
    file = tmp_path / "solution.json"
    file.write_text(json.dumps(data))
    (config,) = read_solution(file).configs_for(LINEAR)
    assert dict(config.fields) == BLOCKS


def test_a_bad_solution_is_refused_and_named(tmp_path):
    file = tmp_path / "solution.json"
    file.write_text('{"config": [{"block_m": 48, "block_n": 16, "block_k": 16}]}')
    with pytest.raises(FileFaultError, match=r"solution\.json: .*block_m: got 48"):
        read_solution(file)
