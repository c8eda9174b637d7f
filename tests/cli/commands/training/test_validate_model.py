from __future__ import annotations

import json
import re
import shutil

import pytest

from tests import samples
from tests.cli.program import inside, told_off
from tests.conftest import SHIPPED_TIMINGS as SHIPPED
from torch_diode.files.datasets import read_dataset, write_dataset
from torch_diode.hardware import known
from torch_diode.model.registry import ModelRegistry
from torch_diode.types.dataset import Dataset


def validated(*arguments):
    ended = inside("validate-model", *arguments, "--json")
    assert ended.code == 0, ended.err
    return json.loads(ended.out)


def test_scores_of_a_set_apart(trained, timings):
    found = validated("--model", trained, "--dataset", timings / "apart.msgpack")
    scores = found["scores"]
    assert [score["k"] for score in scores["model"]["all"]] == [1, 3, 5, 10, 20]
    first = scores["model"]["all"][0]
    assert 1 <= first["geomean"] <= first["p95"] <= first["p99"] <= first["max"]
    assert {"analytical", "default list"} == set(scores["baselines"])
    assert scores["aten"]["all"][0]["geomean"] > 1
    assert scores["noise"] == sorted(scores["noise"], reverse=True)
    error = scores["errors"]["all"]
    assert error["rmse"] == pytest.approx(error["mse"] ** 0.5, abs=1e-4)
    for name in ("op=mm", "precision=bfloat16", "layout=nt", "size=tiny", "rows=aligned"):
        assert name in scores["model"]
    assert found["judged_on"].startswith("all 17 problems")


def test_a_directory_with_other_files_gives_pure_json_too(trained, timings, tmp_path):
    shutil.copy(timings / "apart.msgpack", tmp_path)
    shutil.copy(trained.with_suffix(".json"), tmp_path / "card.json")
    found = validated("--model", trained, "--dataset", tmp_path)
    assert found["judged_on"] == "all 17 problems of the data"


def test_the_worst_are_listed_with_shape_and_config(trained, timings):
    data = ("--model", trained, "--dataset", timings / "apart.msgpack")
    found = validated(*data, "--top-n-worst", "4")
    factors = [entry["factor"] for entry in found["worst_predictions"]]
    assert len(factors) == 4
    assert factors == sorted(factors, reverse=True)
    assert re.match(r"\w+:[\dx]+:", found["worst_predictions"][0]["problem"])
    regrets = [entry["regret"] for entry in found["worst_decisions"]]
    assert regrets == sorted(regrets, reverse=True)
    assert regrets[0] == pytest.approx(found["scores"]["model"]["all"][0]["max"], rel=1e-3)


def test_on_its_own_data_a_model_is_scored_on_what_was_held_out(trained, timings):
    own = ("--model", trained, "--dataset", timings / "train.parquet")
    found = validated(*own)
    assert "held out of training" in found["judged_on"]
    everything = validated(*own, "--score", "all")
    assert "most of which it was trained on" in everything["judged_on"]
    part = validated(*own, "--op-name", "mm")
    assert "held out of training" in part["judged_on"]
    assert list(part["scores"]["model"])[1] == "op=mm"


def test_the_shipped_model_does_as_its_card_says():
    found = validated("--dataset", SHIPPED.parents[1] / "validation")
    shipped = ModelRegistry().find("matmul", known("nvidia-h200"))
    card = json.loads(shipped.path.with_suffix(".json").read_text())["held_out"]
    for got, told in zip(found["scores"]["model"]["all"], card["model"]["all"], strict=True):
        assert got == pytest.approx(told, rel=2e-3)
    assert found["scores"]["aten"]["all"][0] == pytest.approx(card["aten"]["all"][0], rel=1e-4)


def test_data_without_aten_is_scored_and_that_is_said(trained, timings):
    data = ("--model", trained, "--dataset", timings / "without_aten.parquet")
    found = validated(*data)
    assert found["scores"]["aten"] == {}
    assert any("ATen was not timed" in note for note in found["notes"])
    shown = inside("validate-model", *data)
    assert shown.code == 0
    assert "ATen alone" not in shown.out


def test_for_people_it_is_aligned_tables(trained, timings):
    shown = inside("validate-model", "--model", trained, "--dataset", timings / "apart.msgpack")
    assert shown.code == 0, shown.err
    lines = shown.out.splitlines()
    for start in ("model  ", "noise alone", "ATen alone", "analytical", "default list", "op=mm "):
        assert any(line.startswith(start) for line in lines), start
    assert "worst decisions" in shown.out
    assert "\x1b[" not in shown.out


def test_a_card_can_be_written_afterwards(trained, timings, tmp_path):
    model = shutil.copy(trained, tmp_path / "m.pt")
    validated("--model", model, "--dataset", timings / "apart.msgpack", "--write-card")
    assert "all 17 problems of the data" in (tmp_path / "m.md").read_text()
    assert json.loads((tmp_path / "m.json").read_text())["hardware"] == "nvidia-h200"


def test_timings_of_another_chip_are_refused(trained, tmp_path):
    other = [t for t in samples.TIMINGS if t.hardware == "nvidia-h100"]
    write_dataset(Dataset.from_timings(other), tmp_path / "d.json")
    data = ("validate-model", "--model", trained, "--dataset", tmp_path / "d.json")
    said = told_off(*data)
    assert "got timings of nvidia-h100; expected those of nvidia-h200" in said
    assert "--hardware-name nvidia-h100" in said


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--dataset", "no.parquet"), "no.parquet: no such file"),
        (("--dataset", "no.parquet", "--model", "no.pt"), "no.pt: no such file"),
        (("--dataset", "no.parquet", "--model", "no.txt"), "no.txt: got a model path ending"),
        (("--dataset", "no.parquet", "--score", "some"), "expected one of auto, held-out, all"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(given, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert said in told_off("validate-model", *given)


def test_problems_the_model_does_not_know_are_left_out(trained, timings, tmp_path):
    data = read_dataset(timings / "train.parquet")
    part = data.filter(op="mm", dtype="float16")
    write_dataset(part, tmp_path / "half.parquet")
    model = tmp_path / "m.pt"
    quick = ("--num-epochs", "1", "--hidden-dim", "4")
    inside("train", "--dataset", tmp_path / "half.parquet", "--model", model, *quick)
    found = validated("--model", model, "--dataset", timings / "apart.msgpack")
    assert any("the model abstains on" in note for note in found["notes"])
    scored = found["scores"]["model"]["all"][0]["problems"]
    assert scored < 17
    assert found["judged_on"] == f"{scored} of 17 problems of the data"
    write_dataset(data.filter(op="bmm"), tmp_path / "bmm.parquet")
    said = told_off("validate-model", "--model", model, "--dataset", tmp_path / "bmm.parquet")
    assert "expected what the model was trained on: mm/float16" in said
