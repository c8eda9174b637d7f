"""The command; tests/report has the page."""

import re

import pytest

from tests.cli.program import inside, told_off


def test_it_writes_one_page_with_the_shipped_model(timings, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = ("--dataset", timings / "apart.msgpack", "--hardware-name", "NVIDIA H200")
    ended = inside("report", *data, "--no-default-list")
    assert ended.code == 0, ended.err
    assert re.search(r"^17 problems, regret@1 1\.\d{4}$", ended.out, re.M)
    assert "report.html: " in ended.out
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.html"]


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--dataset", "none.parquet", "none.parquet: no such file"),
        ("--score", "some", "expected one of auto, held-out, all"),
    ],
)
def test_a_fault_is_one_sentence(timings, tmp_path, option, value, said):
    file = tmp_path / "report.html"
    given = {"--dataset": timings / "apart.msgpack", "--output": file, option: value}
    assert said in told_off("report", *(str(part) for pair in given.items() for part in pair))
    assert not file.exists()
