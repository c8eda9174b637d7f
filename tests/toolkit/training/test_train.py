"""train() as a Python function; tests/cli has the command."""

import csv
import resource
import signal
from dataclasses import replace

import pytest

from torch_diode.candidates import candidate_space
from torch_diode.files.datasets import read_dataset, write_dataset
from torch_diode.heuristics import ModelHeuristic
from torch_diode.model.checkpoint import load_model, load_weights
from torch_diode.model.wrapper import ModelWrapper
from torch_diode.toolkit import baselines
from torch_diode.toolkit.training.options import TrainOptions
from torch_diode.toolkit.training.train import train
from torch_diode.types.errors import (
    EmptySelectionError,
    FileFaultError,
    InvalidValueError,
    MissingPartError,
)
from torch_diode.types.problem import MMShape

QUICK = {"num_epochs": 3, "hidden_dim": 16, "num_layers": 1}


@pytest.fixture
def dataset(timings):
    return timings / "train.parquet"


def test_the_result_has_the_model_its_scores_and_its_files(dataset, tmp_path, trained):
    reports = []
    options = TrainOptions(**QUICK, log_dir=tmp_path / "logs")
    result = train(dataset, tmp_path / "m.pt", options, seed=1, progress=reports.append)
    assert result.is_written
    assert result.metadata == load_model(result.path).metadata
    assert result.metadata.options["epochs"] == 3
    assert "held out of training" in result.scored_on
    assert result.evaluation.model["all"][0].k == 1
    assert set(result.evaluation.baselines) == {"analytical", "default list"}
    assert [row["epoch"] for row in result.history] == [1, 2, 3]
    assert [file.name for file in result.card_files[:2]] == ["m.json", "m.md"]
    curves, svg = result.curve_files
    assert [row["epoch"] for row in csv.DictReader(curves.open())] == ["1", "2", "3"]
    assert svg.read_text().count("<svg") == 1
    assert not list(tmp_path.glob("*.state"))
    epochs = [report for report in reports if report.stage == "Training"]
    assert [(report.done, report.total) for report in epochs] == [(1, 3), (2, 3), (3, 3)]
    assert epochs[-1].values["regret@1"] == result.history[-1]["regret@1"]
    assert any("problems to train on" in report.message for report in reports)
    same = load_model(trained).fingerprint()
    assert load_model(result.path).fingerprint() == same, "a seed gives the same model again"


def test_a_stopped_run_continues_and_ends_the_same(dataset, tmp_path):
    options = TrainOptions(num_epochs=6, hidden_dim=16, num_layers=1)

    def stop(report):
        if report.stage == "Training" and report.done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(dataset, tmp_path / "m.pt", options, progress=stop)
    assert [file.name for file in tmp_path.iterdir()] == ["m.pt.state"]
    reports = []
    train(dataset, tmp_path / "m.pt", options, progress=reports.append)
    assert any("continuing from it" in report.message for report in reports)
    assert [report.done for report in reports if report.stage == "Training"] == [4, 5, 6]
    train(dataset, tmp_path / "whole.pt", options)
    weights = [load_weights(tmp_path / name)[1] for name in ("m.pt", "whole.pt")]
    assert all(abs(weights[0][name] - weights[1][name]).max() < 1e-3 for name in weights[0])


def test_ten_problems_are_enough_and_one_is_not(dataset, tmp_path):
    data = read_dataset(dataset)
    ids, reports = data.problems.ids, []
    options = TrainOptions(batch_size=32, num_epochs=2)
    result = train(data.take(ids < 10), tmp_path / "m.pt", options, progress=reports.append)
    messages = [report.message for report in reports]
    assert "8 problems to train on, 2 to stop by, 0 held out" in messages
    assert any(message.startswith("Batches of 1:") for message in messages)
    assert "collect a validation set" in result.scored_on
    with pytest.raises(EmptySelectionError, match="got 1 problems; expected enough"):
        train(data.take(ids < 1), tmp_path / "one.pt", options)


def test_data_without_aten_trains_and_is_noted(timings, tmp_path):
    result = train(timings / "without_aten.parquet", tmp_path / "m.pt", TrainOptions(**QUICK))
    assert any("ATen was not timed" in note for note in result.notes)
    assert result.evaluation.aten == {}


def test_fine_tuning_keeps_what_the_initial_model_covers(trained, dataset, tmp_path):
    mine = read_dataset(dataset).filter(op="mm", dtype="float16")
    options = TrainOptions(init_from=str(trained), num_epochs=2)
    result = train(mine, tmp_path / "m.pt", options)
    assert any("before and is" in note for note in result.notes)
    before, after = load_model(trained).metadata, result.metadata
    assert set(before.covers) <= set(after.covers)
    assert after.options["init_from"] == before.dataset_digest
    assert after.options["methods"] == before.options["methods"] == ["sweep"]
    assert after.ranges["M"][1] >= before.ranges["M"][1]
    with pytest.raises(InvalidValueError, match="got hidden 32 with a model to start from that"):
        train(mine, tmp_path / "x.pt", TrainOptions(init_from=str(trained), hidden_dim=32))


def test_training_that_diverges_is_refused(dataset, tmp_path):
    options = TrainOptions(num_epochs=3, hidden_dim=32, num_layers=1, learning_rate=0.9)
    with pytest.raises(InvalidValueError, match=r"training diverged.*lower --learning-rate"):
        train(dataset, tmp_path / "m.pt", options)
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_overwritten_by_accident(trained, dataset, tmp_path):
    with pytest.raises(FileFaultError, match="exists already"):
        train(dataset, trained)
    data = tmp_path / "m.json"
    write_dataset(read_dataset(dataset), data)
    before = data.read_bytes()
    with pytest.raises(FileFaultError, match=r"m\.json: exists and is no model's card"):
        train(data, tmp_path / "m.pt", TrainOptions(**QUICK))
    assert data.read_bytes() == before
    assert list(tmp_path.iterdir()) == [data]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model_type": "huge"}, "expected one of base, deep"),
        ({"learning_rate": -1.0}, "learning-rate"),
        ({"weight_decay": float("inf")}, "weight-decay"),
        ({"test_share": 0.8, "validation_share": 0.5}, "at most 0.9"),
    ],
)
def test_options_are_checked_when_they_are_made(options, message):
    with pytest.raises(InvalidValueError, match=message):
        TrainOptions(**options)


def test_faults_of_options_are_found_before_the_data_is_read(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(FileFaultError, match="File exists"):
        train("no.parquet", tmp_path / "m.pt", TrainOptions(log_dir=tmp_path / "file"))
    with pytest.raises(FileFaultError, match=r"no\.pt: no such file"):
        train("no.parquet", tmp_path / "m.pt", TrainOptions(init_from="no.pt"))
    with pytest.raises(MissingPartError, match="device: got 'abacus'"):
        train("no.parquet", tmp_path / "m.pt", device="abacus")


def test_the_model_is_written_though_a_baseline_cannot_be_had(dataset, tmp_path, monkeypatch):
    def without_triton(*_):
        raise ModuleNotFoundError("No module named 'triton'")

    monkeypatch.setattr(baselines, "_default_list_regrets", without_triton)
    result = train(dataset, tmp_path / "m.pt", TrainOptions(**QUICK))
    assert load_model(tmp_path / "m.pt").metadata == result.metadata
    (note,) = (note for note in result.notes if "default list" in note)
    assert "no default list to compare with: ModuleNotFoundError" in note


def test_a_full_disk_is_one_sentence_and_keeps_what_was_trained(dataset, tmp_path):
    """The limit on a file's size ends writes as a full disk does, with another number."""
    options = TrainOptions(**{**QUICK, "num_epochs": 6})

    def fill_the_disk(report):
        if report.stage == "Training" and report.done == 4:
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        with pytest.raises(FileFaultError, match=r"m\.pt.*: File too large"):
            train(dataset, tmp_path / "m.pt", options, progress=fill_the_disk)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert [file.name for file in tmp_path.iterdir()] == ["m.pt.state"]
    assert train(dataset, tmp_path / "m.pt", options).is_written


def test_what_the_scores_say_nothing_about_is_noted(dataset, tmp_path):
    result = train(dataset, tmp_path / "m.pt", TrainOptions(**QUICK), ops=["bmm"])
    (note,) = (note for note in result.notes if note.startswith("none of the problems scored on"))
    assert "op=mm, op=addmm" in note
    assert "op=bmm" not in note


def test_a_model_that_loses_to_aten_says_so_and_only_shortlists(dataset, tmp_path, h200):
    result = train(dataset, tmp_path / "m.pt", TrainOptions(**QUICK))
    metadata, weights = load_weights(tmp_path / "m.pt")
    assert metadata.scores["worse_than_aten"] == result.worse_than_aten
    loses = replace(metadata, scores={"worse_than_aten": ["op=mm"]})
    heuristic = ModelHeuristic(ModelWrapper(loses, weights))
    for op, expected in (("mm", True), ("addmm", False)):
        problem = MMShape(op, 512, 512, 512)
        ranking = heuristic.rank(problem, candidate_space(problem, h200), h200)
        assert bool(ranking.shortlist) == expected
        assert (
            "ATen alone was better on its held-out problems (op=mm)" in ranking.shortlist
        ) == expected
