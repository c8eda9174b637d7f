"""The selection benchmark without its GPU: real problems, decisions and kernels."""

import math

import pytest

from tests.benchmarks.dry_run import dry_run
from tests.scripts import load_script
from torch_diode import MMShape
from torch_diode.files.shape_sets import read_shapes

pytest.importorskip("triton", reason="Inductor's CUDA lowering needs triton")
selection = load_script("benchmarks", "_selection")


def test_a_validation_problem_of_a_real_model_counts_as_one(h200):
    posed = selection.posed_problems(400, 1, h200)
    real = set(read_shapes(selection.REAL).problems)
    assert {(p.origin, p.problem in real) for p in posed} == {
        (selection.LOG_NORMAL, False),
        (selection.REAL_MODELS, True),
    }
    assert all(p.swept for p in posed if p.origin == selection.LOG_NORMAL)
    assert any(p.swept for p in posed if p.origin == selection.REAL_MODELS)


def test_every_part_runs_and_a_run_is_resumed(tmp_path):
    output = tmp_path / "selection.json"
    few = ("--problems", "2", "--processes", "1", "--minutes", "5", "--cold", "1")
    cold, _ = dry_run("selection_live.py", output, "--parts", "cold", *few)
    assert cold["summary"]["compile seconds"]["problems"] == 1

    data, printed = dry_run("selection_live.py", output, "--parts", "clean,tuned", *few)
    assert data["dry"]
    assert {"hardware", "model", "torch", "triton", "seed", "date", "commands"} <= set(data)
    assert len(data["commands"]) == 2
    assert {row["set"] for row in data["rows"]} == {"log-normal", "real models"}
    assert [row.get("cold") for row in data["rows"]] == [cold["rows"][0]["cold"], None]
    for row in data["rows"]:
        assert MMShape.from_key(row["problem"]).key == row["problem"]
        assert {row["diode"], row["max-autotune"]["pick"]} <= row["times"].keys()
        assert row["listed"] > 1
        assert len(row["times"]) > 10
    own = [row["times"][row["diode"]][0] / row["times"]["aten"][0] for row in data["rows"]]
    ratio = data["summary"]["all"]["diode over aten"]
    assert ratio["geomean"] == pytest.approx(math.exp(sum(map(math.log, own)) / 2))
    assert ratio["problems"] == 2
    assert data["summary"]["all"]["max-autotune over best"]["geomean"] >= 1.0
    assert data["summary"]["kernels benchmarked"]["diode max-autotune"] == 3.0
    assert "diode over aten" in printed


def test_a_file_of_another_seed_or_model_is_not_resumed(tmp_path, monkeypatch):
    live = load_script("benchmarks", "_live")
    path = tmp_path / "there.json"
    head, rows = live.begun(path, "nvidia-h200", 7, True)
    assert (head["seed"], rows) == (7, [])
    live.save(path, {**head, "rows": []})
    assert live.begun(path, "nvidia-h200", None, True)[1] == [], "interrupted before its first row"
    live.save(path, {**head, "rows": [{"problem": "one"}]})
    again, rows = live.begun(path, "nvidia-h200", None, True)
    assert (again["seed"], rows) == (7, [{"problem": "one"}])
    assert again["commands"] == [*head["commands"], *head["commands"]]
    assert live.begun(path, "nvidia-h200", 8, True)[1] == []
    monkeypatch.setattr(live, "model_digest", lambda hardware: "another")
    head, rows = live.begun(path, "nvidia-h200", None, True)
    assert (head["model"], rows) == ("another", [])
    assert len(head["commands"]) == 1
