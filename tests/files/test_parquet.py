import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given

from tests import samples
from tests.files.refusals import refusal
from tests.strategies import datasets
from torch_diode.files.parquet import read_parquet, write_parquet
from torch_diode.types import schema as spec

HEADER = {b"torch_diode": json.dumps({"format": "torch-diode dataset", "version": 2})}


def refused(file):
    return refusal(read_parquet, file)


@given(datasets())
def test_a_dataset_reads_back_row_by_row(tmp_path_factory, dataset):
    file = tmp_path_factory.mktemp("parquet") / "x.parquet"
    write_parquet(file, dataset)
    assert list(read_parquet(file)) == list(dataset)
    assert read_parquet(file) == dataset


def test_anybody_can_read_the_columns(tmp_path):
    write_parquet(tmp_path / "x.parquet", samples.dataset())
    table = pq.read_table(tmp_path / "x.parquet")
    assert table.column_names == list(spec.BY_NAME)
    assert table.column("M").to_pylist()[:4] == [512, 512, 512, 64]


def test_pages_have_checksums_and_are_refused_when_they_do_not_match(tmp_path):
    file = tmp_path / "x.parquet"
    write_parquet(file, samples.dataset())
    whole = file.read_bytes()
    group = pq.read_metadata(file).row_group(0)
    for number in range(group.num_columns):
        chunk = group.column(number)
        start = chunk.dictionary_page_offset or chunk.data_page_offset
        damaged = bytearray(whole)
        damaged[start + chunk.total_compressed_size - 1] ^= 1
        file.write_bytes(damaged)
        assert "not a whole Parquet file" in refused(file)


def test_a_file_of_an_earlier_release_with_a_checksum_in_its_footer_reads(tmp_path):
    file = tmp_path / "x.parquet"
    metadata = {**HEADER, b"torch_diode_crc32": b"0123abcd"}
    pq.write_table(samples.dataset().table.replace_schema_metadata(metadata), file)
    assert read_parquet(file).digest == samples.dataset().digest


@pytest.mark.parametrize("part", [0.0, 0.3, 0.9, 0.999])
def test_a_truncated_file_is_refused(tmp_path, part):
    file = tmp_path / "x.parquet"
    write_parquet(file, samples.dataset())
    whole = file.read_bytes()
    file.write_bytes(whole[: int(len(whole) * part)])
    assert ("got an empty file" if part == 0 else "not a whole Parquet file") in refused(file)


def test_a_file_without_our_header_is_refused(tmp_path):
    file = tmp_path / "x.parquet"
    file.write_text("hello")
    assert "not a whole Parquet file" in refused(file)
    pq.write_table(pa.table({"a": [1]}), file)
    assert "without torch-diode's header" in refused(file)


@pytest.mark.parametrize(
    ("header", "said"),
    [
        (b"{", "not JSON"),
        (b'{"format": "torch-diode table", "version": 2}', "expected 'torch-diode dataset'"),
        (b'{"format": "torch-diode dataset", "version": 3}', "reads up to 2, upgrade it"),
        (b'{"format": "torch-diode dataset", "version": 2, "provenance": 1}', "provenance"),
        (b"[" * 100_000, "not JSON"),
    ],
)
def test_a_bad_header_is_refused(tmp_path, header, said):
    file = tmp_path / "x.parquet"
    table = samples.dataset().table.replace_schema_metadata({b"torch_diode": header})
    pq.write_table(table, file)
    assert said in refused(file)


def with_column(tmp_path, name, array):
    file = tmp_path / "x.parquet"
    table = samples.dataset().table
    table = table.drop_columns([name]) if name in table.column_names else table
    pq.write_table(table.append_column(name, array).replace_schema_metadata(HEADER), file)
    return file


@pytest.mark.parametrize(
    ("name", "values", "said"),
    [
        ("time_us", [1.0] * 6 + [float("nan")], "microseconds above zero"),
        ("hardware", ["NVIDIA H200\n"] * 7, r"got 'NVIDIA H200\n'"),
        ("M", ["512"] * 7, "column 'M'"),
        ("secret", [1] * 7, "unknown column 'secret'"),
    ],
)
def test_a_column_with_what_no_timing_can_be_is_refused(tmp_path, name, values, said):
    assert said in refused(with_column(tmp_path, name, pa.array(values)))


def test_a_column_whose_name_is_not_utf_8_is_refused(tmp_path):
    """Written by hand: pyarrow's writer would not."""
    file = with_column(tmp_path, "secret", pa.array([1] * 7))
    file.write_bytes(file.read_bytes().replace(b"secret", b"secr\xff\xfe"))
    refused(file)


def test_a_missing_column_with_a_default_is_filled_in(tmp_path):
    file = tmp_path / "x.parquet"
    table = samples.dataset().table.drop_columns(["kpack", "triton", "tf32"])
    pq.write_table(table.replace_schema_metadata(HEADER), file)
    assert read_parquet(file).digest == samples.dataset().digest
