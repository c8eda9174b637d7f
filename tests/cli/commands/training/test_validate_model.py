"""The command; tests/toolkit/test_validate.py has the function."""

import json
import shutil

import pytest

from tests.cli.program import inside, told_off
from tests.conftest import SHIPPED_TIMINGS
from torch_diode.model.registry import ModelRegistry


def validated(*arguments):
    ended = inside("validate-model", *arguments, "--json")
    assert ended.code == 0, ended.err
    return json.loads(ended.out)


def test_programs_get_json_and_a_card_can_be_written(trained, timings, tmp_path):
    model = shutil.copy(trained, tmp_path / "m.pt")
    data = ("--model", model, "--dataset", timings / "apart.msgpack")
    result = validated(*data, "--top-n-worst", "4", "--batch-size", "32", "--write-card")
    for card in ("m.md", "m.json"):
        assert "all 17 problems of the data" in (tmp_path / card).read_text()
    assert result["judged_on"] == "all 17 problems of the data"
    assert set(result["scores"]) == {
        *("model", "aten", "baselines", "errors", "noise", "worse_than_aten")
    }
    assert len(result["worst_predictions"]) == 4
    part = validated(*data, "--op-name", "mm", "--score", "all")
    assert list(part["scores"]["model"])[:2] == ["all", "op=mm"]


def test_the_shipped_model_does_as_its_card_says(h200):
    result = validated("--dataset", SHIPPED_TIMINGS.parents[1] / "validation")
    shipped = ModelRegistry().find("matmul", h200)
    card = json.loads(shipped.path.with_suffix(".json").read_text())["held_out"]
    for own, expected in zip(result["scores"]["model"]["all"], card["model"]["all"], strict=True):
        assert own == pytest.approx(expected, rel=2e-3)
    assert result["scores"]["aten"]["all"][0] == pytest.approx(card["aten"]["all"][0], rel=1e-4)


def test_people_get_aligned_tables(trained, timings):
    shown = inside("validate-model", "--model", trained, "--dataset", timings / "apart.msgpack")
    assert shown.code == 0, shown.err
    lines = shown.out.splitlines()
    for start in ("model  ", "noise alone", "ATen alone", "analytical", "default list", "op=mm "):
        assert any(line.startswith(start) for line in lines), start
    assert "worst decisions" in shown.out
    assert "\x1b[" not in shown.out
    silent = ("--dataset", timings / "without_aten.parquet", "--top-n-worst", "0")
    shown = inside("validate-model", "--model", trained, *silent)
    assert "Note: ATen was not timed" in shown.out
    assert "ATen alone" not in shown.out
    assert "worst" not in shown.out


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--dataset", "no.parquet"), "no.parquet: no such file"),
        (("--dataset", "no.parquet", "--model", "no.txt"), "no.txt: got a model path ending"),
        (("--dataset", "no.parquet", "--score", "some"), "expected one of auto, held-out, all"),
    ],
)
def test_a_fault_is_one_sentence(given, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert said in told_off("validate-model", *given)
