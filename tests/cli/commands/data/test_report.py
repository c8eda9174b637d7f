from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests import samples
from tests.cli.program import inside, refusal, torch_diode
from tests.conftest import QUICK_TRAINING as QUICK
from torch_diode.files.datasets import read_dataset, write_dataset

ROOT = Path(__file__).parents[4]
DATA = ROOT / "diode_datasets/matmul/nvidia-h200/train/sweep-1.parquet"
MODEL = ROOT / "trained_models/matmul/nvidia-h200/matmul.pt"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A few real problems, as MessagePack."""
    whole = read_dataset(DATA)
    file = tmp_path_factory.mktemp("data") / "few.msgpack"
    write_dataset(whole.take(whole.problems.ids % 600 == 0), file)
    return file


def shown(file):
    text = file.read_text(encoding="utf-8")
    return json.loads(re.search(r'id="data">(.*?)</script>', text, re.S)[1])


def test_it_writes_one_page_with_the_shipped_model_and_inductors_list(data, tmp_path):
    file = tmp_path / "new" / "report.html"
    ended = torch_diode("report", "--dataset", data, "--output", file)
    assert ended.returncode == 0, ended.stderr
    assert re.search(r"^\d+ problems, regret@1 1\.\d{4}$", ended.stdout, re.M)
    assert "open it in a browser" in ended.stdout
    found = shown(file)
    assert found["about"]["dataset"] == "few.msgpack"
    assert found["about"]["hardware"] == "nvidia-h200"
    assert found["curves"]["default"] > 1
    assert [entry.name for entry in file.parent.iterdir()] == ["report.html"]


def test_a_model_file_and_a_folder_of_shards_do_too(data, tmp_path):
    file = tmp_path / "report.html"
    given = ("--dataset", data.parent, "--model", MODEL, "--hardware-name", "NVIDIA H200")
    ended = torch_diode("report", *given, "--output", file, "--no-default-list")
    assert ended.returncode == 0, ended.stderr
    found = shown(file)
    assert found["about"]["model"] == "matmul.pt"
    assert found["about"]["dataset"] == f"{data.parent.name}/"
    assert found["curves"]["default"] is None


def test_without_an_output_the_page_lies_here(data, tmp_path):
    ended = torch_diode("report", "--dataset", data, "--no-default-list", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert shown(tmp_path / "report.html")["about"]["problems"] > 10


def test_it_scores_the_problems_that_validate_model_does(tmp_path):
    """Of a model trained on one operation of a file with two."""
    whole = read_dataset(DATA)
    both = whole.take(whole.problems.ids % 150 == 0).filter(op=["mm", "bmm"])
    assert both.texts("op") == ["bmm", "mm"]
    file, model = tmp_path / "both.parquet", tmp_path / "m.pt"
    write_dataset(both, file)
    train = ("train", "--dataset", file, "--op-name", "mm", "--model", model, *QUICK)
    assert inside("--seed", "3", *train).code == 0
    given = ("--dataset", file, "--model", model)
    told = json.loads(inside("validate-model", *given, "--json").out)["judged_on"]
    page = tmp_path / "report.html"
    assert inside("report", *given, "--output", page, "--no-default-list").code == 0
    scored = told.split()[0]
    assert shown(page)["about"]["scored"] == int(scored)
    assert shown(page)["about"]["scored_how"].startswith(f"Scores are of {scored} of ")


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
def test_a_fault_is_one_sentence(data, tmp_path, option, value, said):
    file = tmp_path / "report.html"
    given = {"--dataset": data, "--output": file, option: value(tmp_path)}
    found = refusal("report", *(str(part) for pair in given.items() for part in pair))
    assert said in found
    assert not file.exists()


def test_what_is_read_is_not_written_over(data, tmp_path):
    found = refusal("report", "--dataset", data, "--output", data, "--no-default-list")
    assert "got what is read as the output" in found
