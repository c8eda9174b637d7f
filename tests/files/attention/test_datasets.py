import pytest

from tests.files.attention.test_logs import HEADS_FIRST, ROWS_FIRST, SMALL, log
from torch_diode.files.attention.datasets import holds_attention, read_attention
from torch_diode.toolkit.datasets import convert
from torch_diode.types.attention.dataset import AttentionDataset
from torch_diode.types.errors import FileFaultError


@pytest.fixture
def logs(tmp_path):
    """Two logs with a problem each, of an A100."""
    paths = [tmp_path / "a100_flex_attention.txt", tmp_path / "flex_a100_40gb.txt"]
    for path, problem in zip(paths, (ROWS_FIRST, HEADS_FIRST), strict=True):
        path.write_text(log([f"{problem},{SMALL},0.5"]))
    return paths


def test_logs_are_converted_to_parquet_with_their_date(logs, tmp_path):
    output = tmp_path / "both.parquet"
    written = convert(logs, output, collected="2024-08")
    assert isinstance(written, AttentionDataset)
    assert len(written) == 2
    assert read_attention(output) == written
    assert written.provenance["collected"] == ("2024-08",)
    part = convert([output], tmp_path / "part.parquet", hardware="nvidia-a100-40gb")
    assert part.problem(0).layout == "bhmd"
    assert len(part) == 1


def test_what_it_holds_is_told_by_its_content(logs, tmp_path):
    assert holds_attention(logs[0])
    (tmp_path / "notes.txt").write_text("attention")
    assert not holds_attention(tmp_path / "notes.txt")
    assert not holds_attention(tmp_path / "missing.parquet")


def test_other_forms_and_other_timings_beside_it_are_refused(logs, tmp_path):
    with pytest.raises(FileFaultError, match="got form json; expected parquet"):
        convert(logs, tmp_path / "both.json")
    (tmp_path / "notes.txt").write_text("attention")
    with pytest.raises(FileFaultError, match="got no timings of flex attention"):
        convert([logs[0], tmp_path / "notes.txt"], tmp_path / "both.parquet")
