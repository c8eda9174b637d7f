from __future__ import annotations

import json

import pytest

from tests import samples
from torch_diode.files.datasets import write_dataset
from torch_diode.hardware import detect
from torch_diode.toolkit.timings import chip_of, read_timings
from torch_diode.types.dataset import Dataset
from torch_diode.types.errors import EmptySelectionError, HardwareMismatchError
from torch_diode.types.timing import Timing


def test_two_chips_have_to_be_told_apart(tmp_path):
    write_dataset(samples.dataset(), tmp_path / "d.parquet")
    with pytest.raises(HardwareMismatchError, match="choose with --hardware-name"):
        read_timings(tmp_path / "d.parquet", None, None, [])
    found = read_timings(tmp_path / "d.parquet", None, "NVIDIA H100 80GB HBM3", [])
    assert found.texts("hardware") == ["nvidia-h100"]
    with pytest.raises(EmptySelectionError, match="got no timings of baddbmm; it has"):
        read_timings(tmp_path / "d.parquet", None, None, ["baddbmm"])


def test_clean_times_are_kept_where_a_problem_has_both(tmp_path, capsys):
    def timing(method, problem=samples.LINEAR):
        return Timing("nvidia-h200", problem, samples.ATEN, 9.0, method=method)

    both = [timing("sweep"), timing("feedback"), timing("feedback", samples.BIASED)]
    both += [timing("feedback-clean", samples.BIASED)]
    write_dataset(Dataset.from_timings(both), tmp_path / "d.json")
    found = read_timings(tmp_path / "d.json", None, None, [])
    assert sorted((t.method, t.problem.op) for t in found) == [
        ("feedback-clean", "addmm"),
        ("sweep", "mm"),
    ]
    said = capsys.readouterr()
    assert said.err == (
        "2 timings left out: their problems were also measured by sweep or feedback-clean\n"
    )
    assert said.out == ""


def test_the_way_of_measuring_that_is_kept_is_named(tmp_path, capsys):
    both = [
        Timing("nvidia-h200", samples.LINEAR, samples.ATEN, 9.0, method=method)
        for method in ("feedback", "feedback-clean")
    ]
    write_dataset(Dataset.from_timings(both), tmp_path / "d.json")
    assert len(read_timings(tmp_path / "d.json", None, None, [])) == 1
    assert "also measured by feedback-clean\n" in capsys.readouterr().err


def test_an_unknown_chip_is_known_where_it_is():
    here = detect("cpu")
    mine = Dataset.from_timings([Timing(here.name, samples.LINEAR, samples.ATEN, 1.0)])
    assert chip_of(mine, "cpu") == here
    other = Dataset.from_timings([Timing("abacus-9", samples.LINEAR, samples.ATEN, 1.0)])
    with pytest.raises(HardwareMismatchError, match="abacus-9, whose properties are not known"):
        chip_of(other)


def test_no_timings_at_all(tmp_path):
    write_dataset(Dataset.empty(), tmp_path / "d.json")
    assert json.loads((tmp_path / "d.json").read_text())["hardware"] == {}
    with pytest.raises(EmptySelectionError, match="got no timings; expected some"):
        read_timings(tmp_path / "d.json", None, None, [])
