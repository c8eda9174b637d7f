import json
import shutil
from dataclasses import replace

import pytest

from tests import samples
from torch_diode.files.datasets import read_dataset, write_dataset
from torch_diode.hardware import cpu, detect
from torch_diode.toolkit.datasets import (
    convert,
    hardware_of,
    read_all,
    select_comparable,
    select_timings,
    stats,
)
from torch_diode.toolkit.tables import build_table
from torch_diode.types.dataset import Dataset
from torch_diode.types.errors import (
    EmptySelectionError,
    FileFaultError,
    HardwareMismatchError,
    InvalidValueError,
)
from torch_diode.types.timing import Timing

H200 = samples.dataset().filter(hardware="nvidia-h200")


@pytest.fixture
def messages():
    return []


@pytest.fixture
def progress(messages):
    return lambda report: messages.append(report.message)


@pytest.fixture
def folder(tmp_path):
    """A dataset among the other JSON files that the tutorial leaves."""
    write_dataset(H200, tmp_path / "d.json")
    (tmp_path / "card.json").write_text('{"format": "torch-diode model"}')
    (tmp_path / "solution.json").write_text('{"config": []}')
    return tmp_path


def test_files_that_are_no_datasets_are_skipped_and_reported(folder, messages, progress):
    shutil.copy(folder / "d.json", folder / "again.json")
    assert len(read_all(folder, ["json"], progress=progress)) == 6
    assert messages == [
        f"{folder / 'card.json'}: skipped, not a dataset",
        f"{folder / 'solution.json'}: skipped, not a dataset",
        f"{folder}: read again.json, d.json",
    ]


def test_a_named_file_is_never_skipped(folder):
    with pytest.raises(FileFaultError, match="expected 'torch-diode dataset'"):
        read_all(folder / "card.json")


def test_a_directory_of_other_files_alone_is_refused(folder):
    (folder / "d.json").unlink()
    with pytest.raises(EmptySelectionError, match="got no dataset among its files"):
        read_all(folder)


def test_only_the_given_forms_are_read(folder):
    (folder / "bad.msgpack").write_bytes(b"x")
    assert len(read_all(folder, [".json"])) == 6
    with pytest.raises(InvalidValueError, match="file-extensions"):
        read_all(folder, ["xml"])


def test_every_function_reads_a_directory_a_file_and_a_dataset(folder, tmp_path):
    output = tmp_path / "out" / "all.parquet"
    for source in (folder, folder / "d.json", H200):
        assert convert([source], output, overwrite=True) == H200 == read_dataset(output)
        assert len(build_table(source, k=2)) == 2
        assert stats(source).to_dict()["digest"] == H200.digest
    assert json.loads(json.dumps(stats(folder, limit=1).to_dict()))["problems"][0]["configs"] == 3


def test_an_empty_selection_names_what_there_is():
    with pytest.raises(
        EmptySelectionError, match=r"x: got no timings of baddbmm; it has addmm, bmm"
    ):
        select_timings(samples.dataset(), ops=["baddbmm"], name="x")
    with pytest.raises(EmptySelectionError, match="got no timings; expected some"):
        select_timings(Dataset.empty())
    with pytest.raises(InvalidValueError, match="op-name"):
        select_timings(samples.dataset(), ops=["conv"])


def test_timings_of_several_chips_are_not_comparable():
    with pytest.raises(HardwareMismatchError, match="choose with --hardware-name"):
        select_comparable(samples.dataset())
    part = select_comparable(samples.dataset(), "NVIDIA H100 80GB HBM3")
    assert part.texts("hardware") == ["nvidia-h100"]


def test_the_most_accurate_method_of_each_problem_is_kept(messages, progress):
    def timing(method, problem=samples.LINEAR):
        return Timing("nvidia-h200", problem, samples.ATEN, 9.0, method=method)

    both = [timing("sweep"), timing("feedback"), timing("feedback", samples.BIASED)]
    both += [timing("feedback-clean", samples.BIASED)]
    part = select_comparable(Dataset.from_timings(both), progress=progress)
    assert sorted((t.method, t.problem.op) for t in part) == [
        ("feedback-clean", "addmm"),
        ("sweep", "mm"),
    ]
    assert messages == [
        "2 timings left out: their problems were also measured by sweep or feedback-clean"
    ]


def test_an_unknown_chip_is_known_where_it_is(monkeypatch):
    monkeypatch.setattr(cpu, "cpu_name", lambda info: "abacus-8")
    mine = Dataset.from_timings([Timing("abacus-8", samples.LINEAR, samples.ATEN, 1.0, threads=2)])
    assert hardware_of(mine) == replace(detect("cpu"), threads=0)
    other = Dataset.from_timings([Timing("abacus-9", samples.LINEAR, samples.ATEN, 1.0)])
    with pytest.raises(HardwareMismatchError, match="abacus-9, whose properties are not known"):
        hardware_of(other)
