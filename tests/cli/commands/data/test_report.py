"""The command; tests/report has the page."""

from __future__ import annotations

import re

import pytest

from tests import samples
from tests.cli.program import inside, refusal, told_off, torch_diode
from torch_diode.files.datasets import write_dataset


def test_it_writes_one_page_with_the_shipped_model(timings, tmp_path):
    data = ("--dataset", timings / "apart.msgpack", "--hardware-name", "NVIDIA H200")
    ended = torch_diode("report", *data, cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert re.search(r"^17 problems, regret@1 1\.\d{4}$", ended.stdout, re.M)
    assert "report.html: " in ended.stdout
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.html"]


def test_it_prints_the_regret_that_validate_model_prints(trained, timings, tmp_path):
    given = ("--dataset", timings / "train.parquet", "--model", trained)
    page = tmp_path / "report.html"
    report = inside("report", *given, "--output", page, "--no-default-list").out
    problems, regret = re.search(r"^(\d+) problems, regret@1 ([\d.]+)$", report, re.M).groups()
    model = next(
        line.split() for line in inside("validate-model", *given).out.splitlines()
        if line.startswith("model ")
    )  # fmt: skip
    assert model[1:3] == [problems, regret]
    assert f"Scores are of {problems} of " in report


def broken_model(folder):
    file = folder / "broken.pt"
    file.write_bytes(b"not a model")
    return file


def mixed_data(folder):
    file = folder / "mixed.json"
    write_dataset(samples.dataset(), file)
    return file


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--dataset", lambda folder: folder / "none.parquet", "none.parquet: no such file"),
        ("--dataset", mixed_data, "choose with --hardware-name"),
        ("--hardware-name", lambda _: "nvidia-a100", "got no timings of nvidia-a100"),
        ("--model", lambda folder: folder / "no.pt", "no.pt: no such file"),
        ("--model", broken_model, "broken.pt: got a file that is no plain model"),
        ("--output", lambda folder: folder, "got a directory; expected the name of an HTML file"),
        ("--score", lambda _: "some", "expected one of auto, held-out, all"),
    ],
)
def test_a_fault_is_one_sentence(timings, tmp_path, option, value, said):
    file = tmp_path / "report.html"
    given = {"--dataset": timings / "apart.msgpack", "--output": file, option: value(tmp_path)}
    assert said in told_off("report", *(str(part) for pair in given.items() for part in pair))
    assert not file.exists()


def test_an_input_is_not_written_over(timings):
    data = timings / "apart.msgpack"
    assert "got an input as the output" in refusal("report", "--dataset", data, "--output", data)
