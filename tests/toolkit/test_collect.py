from __future__ import annotations

import shlex

import pytest

from tests.cli.program import inside
from torch_diode.collection.workers.fork_safety import run_in_subprocess
from torch_diode.toolkit import collect
from torch_diode.types.problem import MMShape


def test_inductors_lists_come_back_from_another_process():
    pytest.importorskip("triton")
    from torch_diode.hardware import known

    problem = MMShape("mm", 256, 256, 256)
    lists = run_in_subprocess(collect.default_lists, [problem], known("nvidia-h200"))
    assert len(lists[problem]) > 10


COLLECT = ("--device", "cpu", "collect", "--operations", "mm", "--max-size", "64")


def test_every_problem_is_listed_when_all_are_timed(tmp_path):
    ended = inside(*COLLECT, "--num-shapes", "25", "--output", tmp_path / "t.parquet")
    assert ended.code == 0, ended.err
    assert ended.out.count(" float32 ") == 25
    assert "more problems" not in ended.out


def test_where_there_are_too_many_the_command_that_lists_them_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(collect, "_LISTED", 2)
    output = tmp_path / "my timings.parquet"
    ended = inside(*COLLECT, "--num-shapes", "3", "--output", output)
    assert ended.code == 0, ended.err
    named = f"torch-diode stats '{output}' --limit 0"
    assert f"… and 1 more problems ({named} lists all)" in ended.out
    again = inside(*shlex.split(named)[1:])
    assert again.out.count(" float32 ") == 3
