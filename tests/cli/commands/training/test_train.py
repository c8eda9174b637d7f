from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from tests.cli.program import inside, told_off
from tests.conftest import QUICK_TRAINING as QUICK
from torch_diode.files.datasets import read_dataset, write_dataset
from torch_diode.model.checkpoint import load_model, load_weights
from torch_diode.toolkit.training import train


def arguments(timings, model, *more):
    return ("--seed", "1", "train", "--dataset", timings / "train.parquet", "--model", model, *more)


def test_a_model_its_card_and_its_plots(trained):
    model = load_model(trained)
    assert model.metadata.hardware == "nvidia-h200"
    assert model.metadata.shape["hidden"] == 16
    assert model.metadata.options["epochs"] == 3
    card = json.loads(trained.with_suffix(".json").read_text())
    assert card["held_out"]["model"]["all"][0]["k"] == 1
    assert set(card["held_out"]["baselines"]) == {"analytical", "default list"}
    assert "held out of training" in card["judged_on"]
    text = trained.with_suffix(".md").read_text()
    assert "| **model** |" in text
    plots = list(trained.parent.glob("quick-*.*"))
    assert len(plots) == 3
    assert sum(plot.stat().st_size for plot in plots) < 200_000
    assert all(plot.name in text for plot in plots)
    assert not list(trained.parent.glob("*.state"))


def test_it_says_what_it_trains_on_and_how_far_it_is(timings, tmp_path):
    ended = inside(*arguments(timings, tmp_path / "m.pt", *QUICK, "--log-dir", tmp_path / "logs"))
    assert ended.code == 0, ended.err
    assert "problems to train on" in ended.out
    assert "epoch 3 of 3: loss" in ended.out
    assert "ATen alone" in ended.out
    rows = list(csv.DictReader((tmp_path / "logs/m-history.csv").open()))
    assert [row["epoch"] for row in rows] == ["1", "2", "3"]
    assert (tmp_path / "logs/m-curves.svg").read_text().count("<svg") == 1


def test_a_seed_gives_the_same_model_again(trained, timings, tmp_path):
    inside(*arguments(timings, tmp_path / "m.pt", *QUICK))
    assert load_model(tmp_path / "m.pt").fingerprint() == load_model(trained).fingerprint()


@pytest.fixture
def one_thread():
    """Sums in one order, here and in a process of its own."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_many_cores_are_left_alone(timings, tmp_path, monkeypatch):
    found = []
    whole = train.train

    def counting(*given, **named):
        found.append(torch.get_num_threads())
        return whole(*given, **named)

    monkeypatch.setattr(train, "train", counting)
    before = torch.get_num_threads()
    torch.set_num_threads(6)
    try:
        inside(*arguments(timings, tmp_path / "m.pt", *QUICK))
        assert (found, torch.get_num_threads()) == ([4], 6)
    finally:
        torch.set_num_threads(before)


def epochs_in(state: Path) -> int:
    """How far a run has come; before the first epoch it keeps the heads."""
    return int(torch.load(state, weights_only=True)["epoch"]) if state.exists() else 0


@pytest.mark.usefixtures("one_thread")
def test_a_killed_run_goes_on_and_ends_the_same(timings, tmp_path):
    options = ("--num-epochs", "30", "--hidden-dim", "16", "--num-layers", "1")
    command = [
        sys.executable,
        "-m",
        "torch_diode",
        *arguments(timings, tmp_path / "m.pt", *options),
    ]
    state = tmp_path / "m.pt.state"
    with subprocess.Popen(
        [str(part) for part in command],
        env={**os.environ, "TORCH_DIODE": "0", "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
    ) as run:
        deadline = time.monotonic() + 200
        while epochs_in(state) < 3 and run.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        run.send_signal(signal.SIGKILL)
    assert state.exists()
    assert not (tmp_path / "m.pt").exists()
    ended = inside(*arguments(timings, tmp_path / "m.pt", *options))
    assert ended.code == 0, ended.err
    assert "going on from it" in ended.out
    assert "epoch 3 of 30" not in ended.out
    assert not state.exists()
    inside(*arguments(timings, tmp_path / "whole.pt", *options))
    weights = [load_weights(tmp_path / name)[1] for name in ("m.pt", "whole.pt")]
    assert all(abs(weights[0][name] - weights[1][name]).max() < 1e-3 for name in weights[0])


def test_ten_problems_are_enough(timings, tmp_path):
    data = read_dataset(timings / "train.parquet")
    write_dataset(data.take(data.problems.ids < 10), tmp_path / "few.msgpack")
    ended = inside(
        *("train", "--data-dir", tmp_path, "--file-extensions", "msgpack"),
        *("--model", tmp_path / "m.pt", "--batch-size", "32", "--num-epochs", "2"),
    )
    assert ended.code == 0, ended.err
    assert "8 problems to train on, 2 to stop by, 0 held out" in ended.out
    assert "Batches of 1:" in ended.out
    assert "collect a validation set" in ended.out


def test_one_problem_is_not(timings, tmp_path):
    data = read_dataset(timings / "train.parquet")
    write_dataset(data.take(data.problems.ids < 1), tmp_path / "one.msgpack")
    said = told_off("train", "--dataset", tmp_path / "one.msgpack", "--model", tmp_path / "m.pt")
    assert "got 1 problems; expected enough" in said


def test_data_without_aten_trains_and_says_so(timings, tmp_path):
    ended = inside(
        *("train", "--dataset", timings / "without_aten.parquet", "--model", tmp_path / "m.pt"),
        *QUICK,
    )
    assert ended.code == 0, ended.err
    assert "ATen was not timed" in ended.out
    assert "ATen alone" not in ended.out
    load_model(tmp_path / "m.pt")


def test_fine_tuning_starts_from_a_model_and_keeps_what_it_covers(trained, timings, tmp_path):
    data = read_dataset(timings / "train.parquet")
    write_dataset(data.filter(op="mm", dtype="float16"), tmp_path / "mine.parquet")
    ended = inside(
        *("train", "--dataset", tmp_path / "mine.parquet", "--model", tmp_path / "m.pt"),
        *("--init-from", trained, "--num-epochs", "2"),
    )
    assert ended.code == 0, ended.err
    assert "before and is" in ended.out
    before, after = load_model(trained).metadata, load_model(tmp_path / "m.pt").metadata
    assert set(before.covers) <= set(after.covers)
    assert after.options["init_from"] == before.dataset_digest
    assert after.options["methods"] == before.options["methods"] == ["sweep"]
    assert after.ranges["M"][1] >= before.ranges["M"][1]


def test_the_shipped_model_can_be_tuned(timings, tmp_path):
    ended = inside(
        *("train", "--dataset", timings / "train.parquet", "--model", tmp_path / "m.pt"),
        *("--init-from", "shipped", "--num-epochs", "1"),
    )
    assert ended.code == 0, ended.err
    assert "Starting from" in ended.out


def test_another_network_than_the_starting_models_is_refused(trained, timings, tmp_path):
    start = ("--init-from", trained, "--hidden-dim", "32")
    said = told_off(*arguments(timings, tmp_path / "m.pt", *start))
    assert "got hidden 32 with a model to start from that has 16" in said


def test_a_model_that_is_there_is_not_overwritten(trained, timings):
    assert "exists already" in told_off(*arguments(timings, trained))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((), "got neither of --dataset and --data-dir"),
        (("--dataset", "nowhere.parquet"), "nowhere.parquet: no such file"),
        (("--dataset", "x.parquet", "--data-dir", "."), "got both of"),
        (("--dataset", "nowhere.parquet", "--model-type", "huge"), "expected one of base, deep"),
        (("--dataset", "nowhere.parquet", "--init-from", "no.pt"), "no.pt: no such file"),
        (("--dataset", "nowhere.parquet", "--learning-rate", "-1"), "learning-rate"),
        (("--data-dir", ".", "--file-extensions", "csv"), "file-extensions"),
        (("--data-dir", ".", "--test-share", "0.8", "--validation-share", "0.5"), "at most 0.9"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(given, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert said in told_off("train", "--model", "m.pt", *given)


def test_a_selection_that_is_empty_names_what_there_is(timings, tmp_path):
    where = ("train", "--dataset", timings / "train.parquet", "--model", tmp_path / "m.pt")
    said = told_off(*where, "--hardware-name", "nvidia-a100")
    assert "got no timings of nvidia-a100; it has" in said
    assert "nvidia-h200" in said


def test_a_model_worse_than_aten_is_not_written_if_so_asked(timings, tmp_path):
    """One epoch of a tiny network at no learning rate to speak of."""
    bad = ("--num-epochs", "1", "--hidden-dim", "2", "--learning-rate", "0.0000001")
    ended = inside(*arguments(timings, tmp_path / "m.pt", *bad, "--must-beat-aten"))
    assert ended.code == 1
    assert "ATen alone is better in" in ended.out
    assert not (tmp_path / "m.pt").exists()


def test_a_dataset_of_the_models_name_is_not_written_over(timings, tmp_path):
    data = tmp_path / "m.json"
    write_dataset(read_dataset(timings / "train.parquet"), data)
    before = data.read_bytes()
    given = ("train", "--dataset", data, "--model", tmp_path / "m.pt", *QUICK)
    assert "m.json: exists and is no model's card" in told_off(*given)
    assert data.read_bytes() == before
    assert list(tmp_path.iterdir()) == [data]


def test_training_that_runs_away_is_told_and_nothing_is_written(timings, tmp_path):
    more = ("--num-epochs", "3", "--hidden-dim", "32", "--num-layers", "1")
    given = arguments(timings, tmp_path / "m.pt", *more, "--learning-rate", "0.9")
    assert "lower --learning-rate" in inside(*given).err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("given", "said"),
    [(("--log-dir", "{file}"), "File exists"), (("--weight-decay", "inf"), "weight-decay")],
)
def test_what_cannot_be_is_said_before_anything_is_trained(timings, tmp_path, given, said):
    (tmp_path / "file").touch()
    more = [text.format(file=tmp_path / "file") for text in given]
    assert said in told_off(*arguments(timings, tmp_path / "m.pt", *QUICK, *more))
