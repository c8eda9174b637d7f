from __future__ import annotations

import pytest

from tests.cli.program import refusal, torch_diode
from torch_diode.cli.commands.collecting import create_validation
from torch_diode.files.datasets import read_dataset, write_dataset
from torch_diode.files.shape_sets import write_shapes
from torch_diode.types.candidate import Candidate
from torch_diode.types.dataset import Dataset
from torch_diode.types.errors import FileFaultError
from torch_diode.types.problem import MMShape
from torch_diode.types.shapes import OperationShapeSet
from torch_diode.types.timing import Timing

CPU = ("--seed", "42", "--device", "cpu", "create-validation", "--output", "v.parquet")
# Sixty-four shapes there are, and the training set has most of them.
FEW = ("--operations", "mm", "--min-size", "8", "--max-size", "64", "--power-of-two")


def training(*problems: MMShape) -> Dataset:
    return Dataset.from_timings(Timing("nvidia-h200", p, Candidate("aten"), 1.0) for p in problems)


def sizes(dataset: Dataset) -> set[tuple[int, int, int]]:
    return {(t.problem.M, t.problem.N, t.problem.K) for t in dataset}


@pytest.fixture
def folder(tmp_path):
    """A training set of other dtypes and another chip: a problem is its sizes here."""
    powers = (8, 16, 32, 64)
    known = [MMShape("mm", m, n, k) for m in powers for n in powers for k in powers if m != n]
    write_dataset(training(*known), tmp_path / "train.msgpack")
    return tmp_path


def test_nothing_is_shared_with_the_data_beside_the_output(folder):
    ended = torch_diode(*CPU, *FEW, "--num-shapes", "10", cwd=folder)
    assert ended.returncode == 0, ended.stderr
    assert "compared with 48 problems of train.msgpack" in ended.stdout
    found = read_dataset(folder / "v.parquet")
    assert len(found.problems) == 10
    assert not sizes(found) & sizes(read_dataset(folder / "train.msgpack"))


def test_damaged_data_beside_the_output_is_told_of_and_a_model_card_is_not(folder):
    (folder / "damaged.json").write_text('{"format": "torch-diode dataset"')
    (folder / "model.json").write_text('{"format": "torch-diode model", "version": 1}')
    ended = torch_diode(*CPU, *FEW, "--num-shapes", "1", cwd=folder)
    assert ended.returncode == 0, ended.stderr
    assert "not compared with damaged.json" in ended.stdout
    assert "model.json" not in ended.stdout


def test_data_named_to_be_excluded_is(folder):
    (folder / "elsewhere").mkdir()
    (folder / "train.msgpack").rename(folder / "elsewhere" / "train.msgpack")
    ended = torch_diode(
        *CPU, *FEW, "--num-shapes", "10", "--exclude", "elsewhere/train.msgpack", cwd=folder
    )
    assert ended.returncode == 0, ended.stderr
    assert "compared with 48 problems of elsewhere/train.msgpack" in ended.stdout
    assert all(m == n for m, n, _ in sizes(read_dataset(folder / "v.parquet")))
    assert "no such file" in refusal(*CPU, "--exclude", "x.json", "--overwrite", cwd=folder)


def test_a_folder_named_to_be_excluded_may_hold_a_model_card(folder):
    (folder / "model.json").write_text('{"format": "torch-diode model", "version": 1}')
    ended = torch_diode(*CPU, *FEW, "--num-shapes", "10", "--exclude", ".", cwd=folder)
    assert ended.returncode == 0, ended.stderr
    assert "compared with 48 problems of ." in ended.stdout
    assert "model.json: passed over" in ended.stderr


@pytest.mark.parametrize(
    ("train", "output"),
    [
        ("train.msgpack", "val"),
        ("train/timings.parquet", "val"),
        ("train/t.parquet", "val/v.parquet"),
        ("train.msgpack", "far/away/v.parquet"),
    ],
)
def test_training_data_is_found_where_it_mostly_lies(folder, train, output):
    """In the working directory, or beside the output's folder, though it has the output's name."""
    write_dataset(read_dataset(folder / "train.msgpack"), folder / "data" / train)
    (folder / "train.msgpack").unlink()
    asked = ("--device", "cpu", "create-validation", "--output", output, *FEW, "--num-shapes", "10")
    ended = torch_diode(*asked, cwd=folder / "data")
    assert ended.returncode == 0, ended.stderr
    assert f"compared with 48 problems of {train}" in ended.stdout
    assert "compared with nothing" not in ended.stdout


def test_where_nothing_is_found_to_compare_with_it_is_said(tmp_path):
    ended = torch_diode(*CPU, *FEW, "--num-shapes", "1", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    said = [line for line in ended.stdout.splitlines() if line.startswith("compared with")]
    assert said == [
        "compared with nothing: no other dataset was found; name training data with --exclude"
    ]


def test_a_seed_draws_other_problems_than_training_with_it_does(tmp_path):
    """Though the training data is where nobody looks for it."""
    (tmp_path / "apart").mkdir()
    few = ("--num-shapes", "4", "--max-size", "64")
    ended = torch_diode("--device", "cpu", "collect", "-o", "t.parquet", *few, cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    asked = ("--device", "cpu", "create-validation", "-o", "v.parquet", *few)
    ended = torch_diode(*asked, cwd=tmp_path / "apart")
    assert ended.returncode == 0, ended.stderr
    assert "compared with nothing" in ended.stdout
    drawn = [sizes(read_dataset(tmp_path / file)) for file in ("t.parquet", "apart/v.parquet")]
    assert not drawn[0] & drawn[1]


def test_no_more_is_looked_into_than_is_sensible(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    monkeypatch.setattr(create_validation, "_MOST", 1)
    write_dataset(training(MMShape("mm", 8, 8, 8)), folder / "more" / "train.parquet")
    write_dataset(training(MMShape("mm", 8, 8, 8)), folder / "train.parquet")
    assert len(create_validation.neighbours(folder / "v.parquet")) == 1
    said = capsys.readouterr().out
    assert "not looked into: 1 more folders; name training data with --exclude" in said
    assert "not looked into: 1 more files; name training data with --exclude" in said


def test_more_than_there_are_is_refused(folder):
    ended = torch_diode(*CPU, *FEW, "--num-shapes", "17", cwd=folder)
    assert ended.returncode == 2
    assert "got 16 problems that no other dataset has; expected 17" in ended.stderr


def test_a_shape_set_is_left_without_what_training_has(folder):
    fresh = MMShape("mm", 24, 24, 24, dtype="float32")
    old = MMShape("mm", 8, 16, 8, dtype="float32")
    write_shapes(OperationShapeSet.of([fresh, old]), folder / "shapes.json")
    ended = torch_diode(*CPU, "--shapeset", "shapes.json", cwd=folder)
    assert ended.returncode == 0, ended.stderr
    assert "1 problems left out: training data has them" in ended.stdout
    assert "not compared" not in ended.stdout
    assert sizes(read_dataset(folder / "v.parquet")) == {(24, 24, 24)}


def test_a_shape_set_that_training_has_whole_is_refused(folder):
    write_shapes(OperationShapeSet.of([MMShape("mm", 8, 16, 8)]), folder / "shapes.json")
    ended = torch_diode(*CPU, "--shapeset", "shapes.json", cwd=folder)
    assert ended.returncode == 2
    assert "all of them in training data" in ended.stderr


@pytest.mark.parametrize("name", ["train", "train.parquet.parts"])
def test_a_folder_of_shards_beside_the_output_is_training_data_too(folder, name):
    """A dataset, or what an interrupted collection has so far."""
    (folder / name).mkdir()
    (folder / "train.msgpack").rename(folder / name / "shard.msgpack")
    (folder / "empty").mkdir()
    ended = torch_diode(*CPU, *FEW, "--num-shapes", "10", cwd=folder)
    assert ended.returncode == 0, ended.stderr
    shared = sizes(read_dataset(folder / name)) & sizes(read_dataset(folder / "v.parquet"))
    assert not shared


def test_a_folder_that_cannot_be_read_is_told_of(folder, monkeypatch):
    """As root any can, so it fails when it is looked into."""
    closed = folder / "closed"
    closed.mkdir()
    real = create_validation.shards

    def looked_into(path):
        if path == closed:
            raise FileFaultError(f"{path}: Permission denied")
        return real(path)

    monkeypatch.setattr(create_validation, "shards", looked_into)
    monkeypatch.chdir(folder)
    found = create_validation.neighbours(folder / "v.parquet")
    assert found == [folder / "train.msgpack", closed]
