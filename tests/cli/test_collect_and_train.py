from __future__ import annotations

import shutil

import pytest

from tests.cli.conftest import QUICK
from tests.cli.program import inside, told_off


@pytest.fixture
def folder(timings, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(timings / "train.parquet", tmp_path / "t.parquet")
    shutil.copy(timings / "apart.msgpack", tmp_path / "apart.msgpack")
    return tmp_path


FILES = ("collect-and-train", "--output", "t.parquet", "--model", "m.pt")


def test_data_that_is_there_is_trained_on_and_validated(folder):
    ended = inside(*FILES, "--skip-collection", "--validation", "apart.msgpack", *QUICK)
    assert ended.code == 0, ended.err
    steps = [line for line in ended.out.splitlines() if " of 4: " in line]
    assert steps == [
        "2 of 4: training m.pt",
        "3 of 4: apart.msgpack is there",
        "4 of 4: validating m.pt on apart.msgpack",
    ]
    assert "Scored on all 17 problems" in ended.out


def test_each_part_can_be_left_out(folder, trained):
    shutil.copy(trained, folder / "m.pt")
    skipped = ("--skip-collection", "--skip-training")
    ended = inside(*FILES, *skipped, "--validation", "apart.msgpack")
    assert ended.code == 0, ended.err
    assert "training m.pt" not in ended.out
    ended = inside(*FILES, *skipped, "--skip-validation")
    assert (ended.code, ended.out) == (0, "")


def test_what_is_missing_is_one_sentence(folder):
    assert "m.pt: no such file" in told_off(*FILES, "--skip-training")
    gone = ("collect-and-train", "--output", "gone.parquet", "--model", "m.pt")
    assert "gone.parquet: no such file" in told_off(*gone, "--skip-collection")


def test_on_a_cpu_there_is_nothing_to_learn_from(folder):
    """Collecting works there, and gives ATen's times alone."""
    ended = inside(
        *("--device", "cpu", "collect-and-train", "--output", "c.parquet", "--model", "m.pt"),
        *("--num-shapes", "2", "--max-size", "32", "--operations", "mm"),
    )
    assert ended.code == 2
    assert "1 of 4: collecting c.parquet" in ended.out
    assert "Traceback" not in ended.err
