from __future__ import annotations

import json

import pytest

from tests.cli.program import inside, told_off
from torch_diode.files.datasets import read_dataset
from torch_diode.files.solutions import read_solution

ANALYSIS = "model_performance_analysis_by_op.json"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(trained, timings, solution, *more):
    data = ("--model", trained, "--dataset", timings / "apart.msgpack")
    return inside("validate-max-autotune", *data, "--max-autotune-solution", solution, *more)


def test_without_a_solution_one_is_made_of_the_fastest_configs(trained, timings, folder):
    ended = run(trained, timings, "solution.json", "--batch-size", "32")
    assert ended.code == 0, ended.err
    assert "solution.json: there was none" in ended.out
    data = read_dataset(timings / "apart.msgpack")
    solution = read_solution(folder / "solution.json")
    assert len(solution.configs) == len(data.problems)
    fastest = min(
        (t for t in data if t.candidate.config and t.time_us and t.problem == data[0].problem),
        key=lambda t: t.time_us,
    )
    assert any(c.matches(fastest.candidate.config) for c in solution.configs_for(data[0].problem))
    found = json.loads((folder / ANALYSIS).read_text())
    assert found["all"]["problems"] == len(data.problems)
    assert found["all"]["solution"]["with_aten_regret"] == pytest.approx(1.0, abs=1e-4)
    assert sum(part["problems"] for part in found["by_op"].values()) == len(data.problems)
    ratios = [found["all"]["model"][f"top_{k}"]["ratio"] for k in (1, 3, 5, 10, 20)]
    assert ratios == sorted(ratios, reverse=True)
    assert f"{ANALYSIS}: the analysis by operation" in ended.out


def test_the_file_made_is_used_the_next_time(trained, timings, folder):
    run(trained, timings, "solution.json")
    first = json.loads((folder / ANALYSIS).read_text())
    ended = run(trained, timings, "solution.json")
    assert "there was none" not in ended.out
    assert json.loads((folder / ANALYSIS).read_text()) == first


@pytest.mark.parametrize("form", ["one list", "by op"])
def test_the_other_forms_of_a_solution(trained, timings, folder, form):
    data = read_dataset(timings / "apart.msgpack")
    configs = {t.candidate.config for t in data if t.candidate.config and t.problem.op == "mm"}
    listed = [{"block_m": c.block_m, "block_n": c.block_n, "block_k": c.block_k} for c in configs]
    solution = {"config": listed} if form == "one list" else {"mm": {"config": listed}}
    (folder / "s.json").write_text(json.dumps(solution))
    ended = run(trained, timings, "s.json", "--json")
    assert ended.code == 0, ended.err
    found = json.loads(ended.out)
    assert found["by_op"]["mm"]["solution"]["regret"] >= 1
    assert (set(found["by_op"]) == {"mm"}) == (form == "by op")
    assert bool(found["notes"]) == (form == "by op")
    total, count = len(data.problems), found["all"]["problems"]
    judged = f"all {total}" if form == "one list" else f"{count} of {total}"
    assert found["judged_on"] == f"{judged} problems of the data"


def test_a_model_that_names_the_solutions_config_first_is_no_slower(trained, timings, folder):
    """All configs are the solution: nothing can be faster than its best but ATen."""
    data = read_dataset(timings / "without_aten.parquet")
    listed = [c.to_dict() for c in {t.candidate.config for t in data}]
    (folder / "s.json").write_text(json.dumps({"config": listed}))
    where = ("--model", trained, "--dataset", timings / "without_aten.parquet")
    solution = ("--max-autotune-solution", "s.json")
    ended = inside("validate-max-autotune", *where, *solution, "--json")
    found = json.loads(ended.out)["all"]
    assert found["solution"] == {"regret": 1.0, "with_aten_regret": None}
    for k in (1, 3, 5, 10, 20):
        top = found["model"][f"top_{k}"]
        assert top["ratio"] == pytest.approx(top["regret"])


def test_a_solution_of_other_problems_is_refused(trained, timings, folder):
    entry = {"M": 3, "N": 3, "K": 3, "block_m": 16, "block_n": 16, "block_k": 16}
    (folder / "s.json").write_text(json.dumps({"name": "x", "configs": [entry]}))
    data = ("--model", trained, "--dataset", timings / "apart.msgpack")
    said = told_off("validate-max-autotune", *data, "--max-autotune-solution", "s.json")
    assert "none was timed on any problem" in said
    assert not (folder / ANALYSIS).exists()


def test_a_solution_in_a_folder_that_is_not_there_is_a_mistyped_path(trained, timings, folder):
    data = ("--model", trained, "--dataset", timings / "apart.msgpack")
    said = told_off("validate-max-autotune", *data, "--max-autotune-solution", "nonexist/s.json")
    assert (
        said == "nonexist/s.json: no such file, nor a folder nonexist to make it in; check the path"
    )
    assert list(folder.iterdir()) == []


def test_a_broken_solution_is_one_sentence(trained, timings, folder):
    (folder / "s.json").write_text("{")
    data = ("--model", trained, "--dataset", timings / "apart.msgpack")
    said = told_off("validate-max-autotune", *data, "--max-autotune-solution", "s.json")
    assert said.startswith("s.json: not JSON")
