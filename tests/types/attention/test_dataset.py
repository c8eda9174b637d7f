import numpy as np
import pytest

from torch_diode.types.attention.dataset import AttentionDataset
from torch_diode.types.attention.shape import AttentionShape
from torch_diode.types.errors import InvalidValueError

SHAPE = AttentionShape(4, 16, 4096, 2048, 128)
COLUMNS = {
    "hardware": ["nvidia-a100"] * 3,
    **{name: [getattr(SHAPE, name)] * 3 for name in ("B", "H", "M", "N")},
    "D": [128, 128, 64],
    "dtype": ["bfloat16"] * 3,
    "block_m": [128, 64, 64],
    "block_n": [64, 64, 64],
    "num_stages": [3, 3, 2],
    "num_warps": [8, 4, 4],
    "time_us": [np.inf, 20.5, 10.0],
}


def dataset(**changed):
    import pyarrow as pa

    return AttentionDataset(pa.table({**COLUMNS, **changed}), {"collected": ("2024-08",)})


def test_a_problem_has_a_key_and_a_json_form():
    assert SHAPE.key == str(SHAPE) == "forward:4x16x4096x2048x128:bfloat16:bhmd"
    assert AttentionShape.from_dict(SHAPE.to_dict()) == SHAPE
    assert AttentionShape.parse(SHAPE.serialize()) == SHAPE
    scored = AttentionShape(1, 1, 1, 1, 64, score_ops=6, score_reads=1)
    assert scored.key.endswith(":bhmd:score=6/1")


@pytest.mark.parametrize(
    "wrong", [{"B": 0}, {"D": 1.5}, {"dtype": "int8"}, {"kind": "sideways"}, {"layout": "mhbd"}]
)
def test_impossible_problems_are_refused(wrong):
    with pytest.raises(InvalidValueError, match=r"AttentionShape.* got .*; expected "):
        AttentionShape.from_dict({**SHAPE.to_dict(), **wrong})


def test_a_dataset_has_its_rows_by_problem_and_what_did_not_run_has_no_time():
    timings = dataset()
    assert timings.problems.ids.tolist() == [0, 0, 1]
    assert timings.problem(0) == SHAPE
    assert timings.config(0).sizes == (128, 64, 3, 8)
    assert timings.texts("status") == ["failed", "ok", "ok"]
    assert np.isnan(timings.values("time_us")[0])


def test_a_merge_unites_rows_and_provenance():
    other = AttentionDataset(dataset().table, {"collected": ("2025-01",)})
    merged = AttentionDataset.merge([dataset(), other])
    assert len(merged) == 6
    assert merged.provenance == {"collected": ("2024-08", "2025-01")}
    assert merged != dataset()
    assert dataset() == dataset()


@pytest.mark.parametrize(
    "wrong", [{"block_k": [1, 1, 1]}, {"time_us": [-1.0, 1, 1]}, {"dtype": ["int8"] * 3}]
)
def test_columns_that_no_timing_has_are_refused(wrong):
    with pytest.raises(InvalidValueError, match=r"dataset.*: got .*; expected "):
        dataset(**wrong)
