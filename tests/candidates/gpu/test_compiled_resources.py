import pytest

from torch_diode.candidates.gpu.compiled_resources import (
    FOLDER,
    kernel_name,
    measured_kernels,
    read_measured,
)
from torch_diode.types.errors import FileFaultError
from torch_diode.types.problem import MMShape


def test_hopper_has_measured_kernels_and_an_unknown_architecture_has_none():
    assert any(len(kernels.keys) for kernels in measured_kernels("sm_90").values())
    assert measured_kernels("sm_1") == {}
    assert measured_kernels("") == {}


def test_float16_shares_rows_with_bfloat16_but_tf32_not_with_float32():
    names = {
        dtype: kernel_name("triton::mm", MMShape("mm", 64, 64, 64, dtype=dtype))
        for dtype in ("bfloat16", "float16", "float32")
    }
    tf32 = kernel_name("triton::mm", MMShape("mm", 64, 64, 64, dtype="float32", tf32=True))
    assert names["float16"] == names["bfloat16"] == "triton::mm/bfloat16/nn"
    assert len({names["float32"], names["bfloat16"], tf32}) == 3


@pytest.mark.parametrize("text", ["", "[]", '{"version": 99}', '{"version": 1, "columns": ["x"]}'])
def test_an_invalid_file_is_a_clear_error(tmp_path, text):
    path = tmp_path / "sm_90.json"
    path.write_text(text)
    with pytest.raises(FileFaultError, match=r"sm_90\.json"):
        read_measured(path)


def test_shipped_files_can_be_read():
    paths = sorted(FOLDER.glob("sm_*.json"))
    assert paths
    for path in paths:
        assert read_measured(path)["arch"] == path.stem
