"""The selection benchmark without its GPU: real problems, decisions and kernels."""

from __future__ import annotations

import importlib
import math
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks.dry_run import ROOT, dry_run
from torch_diode.candidates.gpu.k_loop import as_in_space
from torch_diode.files.shape_sets import read_shapes
from torch_diode.hardware.catalog import known
from torch_diode.heuristics.analytical import AnalyticalHeuristic
from torch_diode.integration.capture.fake_gpu import pretend
from torch_diode.types.problem import MMShape

pytest.importorskip("triton", reason="Inductor's CUDA lowering needs triton")


def test_a_real_models_problem_is_one_whichever_set_has_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    selection = importlib.import_module("_selection")
    posed = selection.posed_problems(400, 1, known("nvidia-h200"))
    real = set(read_shapes(selection.REAL).problems)
    assert {(p.origin, p.problem in real) for p in posed} == {
        (selection.LOG_NORMAL, False),
        (selection.REAL_MODELS, True),
    }
    assert all(p.swept for p in posed if p.origin == selection.LOG_NORMAL)
    assert any(p.swept for p in posed if p.origin == selection.REAL_MODELS)


def test_every_part_is_rehearsed_and_gone_on_with(tmp_path: Path) -> None:
    output = tmp_path / "selection.json"
    few = ("--processes", "1", "--minutes", "5", "--cold", "1")
    data, printed = dry_run(
        "selection_live.py", output, "--problems", "2", "--parts", "clean,cold", *few
    )
    assert data["dry"]
    assert {"hardware", "model", "torch", "triton", "seed", "date", "commands"} <= set(data)
    assert {row["set"] for row in data["rows"]} == {"log-normal", "real models"}
    for row in data["rows"]:
        assert MMShape.from_key(row["problem"]).key == row["problem"]
        assert row["diode"] in row["times"]
        assert row["listed"] > 1
        assert len(row["times"]) > 10
    assert [("cold" in row) for row in data["rows"]] == [True, False]
    own = [row["times"][row["diode"]][0] / row["times"]["aten"][0] for row in data["rows"]]
    ratio = data["summary"]["all"]["diode over aten"]
    assert ratio["geomean"] == pytest.approx(math.exp(sum(map(math.log, own)) / 2))
    assert ratio["problems"] == 2
    assert "diode over aten" in printed

    again, _ = dry_run("selection_live.py", output, "--problems", "2", "--parts", "tuned", *few)
    assert len(again["commands"]) == 2
    assert [row["times"]["aten"] for row in again["rows"]] == [
        row["times"]["aten"] for row in data["rows"]
    ]
    for row in again["rows"]:
        assert row["max-autotune"]["pick"] in row["times"]
    assert again["summary"]["all"]["max-autotune over best"]["geomean"] >= 1.0
    assert again["summary"]["kernels benchmarked"]["diode max-autotune"] == 3.0


def test_a_file_of_another_seed_or_model_is_not_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    live = importlib.import_module("_live")
    path = tmp_path / "there.json"
    head, rows = live.begun(path, "nvidia-h200", 7, True)
    assert (head["seed"], rows) == (7, [])
    live.save(path, {**head, "rows": []})
    assert live.begun(path, "nvidia-h200", None, True)[1] == [], "cut short before its first row"
    live.save(path, {**head, "rows": [{"problem": "one"}]})
    again, rows = live.begun(path, "nvidia-h200", None, True)
    assert (again["seed"], rows) == (7, [{"problem": "one"}])
    assert again["commands"] == [*head["commands"], *head["commands"]]
    assert live.begun(path, "nvidia-h200", 8, True)[1] == []
    monkeypatch.setattr(live, "model_digest", lambda hardware: "another")
    head, rows = live.begun(path, "nvidia-h200", None, True)
    assert (head["model"], rows) == ("another", [])
    assert len(head["commands"]) == 1


def test_a_kernel_without_a_loop_is_timed_by_whichever_name_it_is_listed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Max-autotune lists it with several stages, the space has it with one."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    selection = importlib.import_module("_selection")
    compiling = importlib.import_module("_selection_compiling")
    hardware = known("nvidia-h200")
    problem = MMShape("mm", 559, 6336, 64, transpose_b=True)
    with pretend(hardware):
        posed = selection.Posed(problem, selection.LOG_NORMAL)
        found = compiling.choices_of(posed, hardware, AnalyticalHeuristic())
    timed = {kernel.candidate for kernel in found.kernels}
    listed = [c for c in found.default if c.config.block_k >= problem.K]
    assert any(c.config.num_stages > 1 for c in listed)
    assert {as_in_space(c, problem) for c in listed} <= timed


def test_compile_seconds_are_weighted_to_all_problems(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    selection = importlib.import_module("_selection")

    def row(chosen: str, seconds: float | None = None) -> dict[str, Any]:
        posed = {"set": "log-normal", "diode": chosen}
        if seconds is None:
            return posed
        diode = {"compile_s": seconds, "configs": [] if chosen == "aten" else ["a config"]}
        return {**posed, "cold": {"plain": {"compile_s": 1.0, "configs": []}, "diode": diode}}

    rows = [row("aten", 1.0), row("aten", 1.0), row("triton::mm", 4.0), row("triton::mm")]
    found = selection.summary(rows)["compile seconds"]
    assert found["share of ATen"] == 0.5
    assert found["diode over plain"] == pytest.approx(2.0)
    assert found["diode, mean"] == pytest.approx(2.5)
    assert found["diode over plain, a template compiled"] == pytest.approx(4.0)
    found = selection.summary(rows[:2])["compile seconds"]
    assert found["diode over plain"] == pytest.approx(1.0)
    assert math.isnan(found["diode over plain, a template compiled"])
    found = selection.summary(rows[3:])["compile seconds"]
    assert found["problems"] == 0
    assert math.isnan(found["diode over plain"])


def test_compiling_alone_needs_nothing_timed(tmp_path: Path) -> None:
    few = ("--processes", "1", "--minutes", "5", "--cold", "1")
    data, _ = dry_run(
        "selection_live.py", tmp_path / "cold.json", "--problems", "1", "--parts", "cold", *few
    )
    assert data["summary"]["compile seconds"]["problems"] == 1
