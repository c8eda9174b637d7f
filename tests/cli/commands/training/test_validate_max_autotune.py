"""The command; tests/toolkit/test_max_autotune.py has the function."""

import json

import pytest

from tests.cli.program import inside, told_off

ANALYSIS = "model_performance_analysis_by_op.json"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def command(trained, timings):
    data = ("--model", trained, "--dataset", timings / "apart.msgpack")
    return ("validate-max-autotune", *data, "--max-autotune-solution")


def test_it_prints_a_row_for_each_operation_and_writes_the_analysis(command, folder):
    ended = inside(*command, "solution.json", "--batch-size", "32")
    assert ended.code == 0, ended.err
    assert "solution.json: did not exist" in ended.err
    assert f"{ANALYSIS}: the analysis by operation" in ended.out
    analysis = json.loads((folder / ANALYSIS).read_text())
    rows = [line.split()[:2] for line in ended.out.splitlines()]
    for name, part in (("all", analysis["all"]), *analysis["by_op"].items()):
        assert [name, str(part["problems"])] in rows
    ended = inside(*command, "solution.json", "--json", "--output", folder / "other.json")
    assert json.loads(ended.out) == analysis == json.loads((folder / "other.json").read_text())


def test_a_fault_is_one_sentence_and_writes_nothing(command, folder):
    (folder / "s.json").write_text("{")
    assert told_off(*command, "s.json").startswith("s.json: not JSON")
    assert "got an input as the output" in told_off(*command, "s.json", "--output", "s.json")
    assert [file.name for file in folder.iterdir()] == ["s.json"]
