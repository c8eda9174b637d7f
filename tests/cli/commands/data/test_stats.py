import json

import pytest

from tests import samples
from tests.cli.program import inside, told_off
from torch_diode.files.datasets import write_dataset


@pytest.fixture
def data(tmp_path):
    file = tmp_path / "data.msgpack"
    write_dataset(samples.dataset(), file)
    return file


def test_it_shows_hardware_operations_problems_and_the_fastest_config(data):
    ended = inside("stats", data)
    assert ended.code == 0, ended.err
    lines = [" ".join(line.split()) for line in ended.out.splitlines()]
    assert "7 timings of 3 problems" in lines
    assert "Hardware: nvidia-h100, nvidia-h200" in lines
    assert "Measured with torch 2.11.0+cu130, 2.13.0" in lines
    assert "nvidia-h200 addmm 1 2 1" in lines
    assert "mm 1 512 4,096 4,096 bfloat16 nt 3 triton::mm 128x256x64 g8 s4 w8 19.75" in lines


@pytest.mark.parametrize("columns", ["", "x", "40"])
def test_no_column_is_lost_whatever_the_width_is_said_to_be(data, columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    ended = inside("stats", data)
    assert ended.code == 0, ended.err
    assert "…" not in ended.out
    names = "op B M N K dtype layout configs fastest µs"
    assert names in [" ".join(line.split()) for line in ended.out.splitlines()]


def test_it_lists_at_most_the_given_number_of_problems(data):
    ended = inside("stats", data, "--limit", "1")
    assert "… and 2 more problems (--limit 0 lists all)" in ended.out
    assert "more problems" not in inside("stats", data, "--limit", "0").out


def test_programs_get_json_alone_on_standard_output(data):
    ended = inside("stats", data, "--json", "--hardware", "nvidia-h200")
    found = json.loads(ended.out)
    assert found["timings"] == 6
    (data.parent / "card.json").write_text('{"format": "torch-diode model"}')
    ended = inside("stats", data.parent, "--json")
    assert json.loads(ended.out)["timings"] == 7
    assert "card.json: skipped" in ended.err
    assert found["problems"][0]["fastest"] == samples.LARGE.to_dict()
    assert found["problems"][1]["failed"] == 1
    assert found["digest"] == samples.dataset().filter(hardware="nvidia-h200").digest


def test_an_empty_selection_is_exit_code_2(data, tmp_path):
    assert "got no timings of baddbmm; it has" in told_off("stats", data, "--operations", "baddbmm")
    (tmp_path / "none").mkdir()
    assert "got no dataset file" in told_off("stats", tmp_path / "none")
