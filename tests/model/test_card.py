"""A card shows the evaluation it is written from."""

import json
import sys

import pytest

from torch_diode.model.card import check_card, write_card
from torch_diode.model.evaluation.plots import training_curves
from torch_diode.model.evaluation.scoring import evaluate_predictions
from torch_diode.types.errors import FileFaultError, MissingPartError

from .test_checkpoint import METADATA


@pytest.fixture
def predictions(table):
    return evaluate_predictions(table, table.time_us * 1.1, noise=[1.01, 1.004, 1.002, 1.001, 1.0])


def test_json_markdown_and_plots(predictions, tmp_path):
    files = write_card(
        tmp_path / "m.pt", METADATA, predictions, "7 problems", ["something to know"]
    )
    assert [file.name for file in files] == [
        "m.json",
        "m.md",
        "m-regret.svg",
        "m-slices.svg",
        "m-times.png",
    ]
    assert sum(file.stat().st_size for file in files[2:]) < 200_000
    data = json.loads(files[0].read_text())
    assert data["judged_on"] == "7 problems"
    assert data["held_out"]["noise"] == [1.01, 1.004, 1.002, 1.001, 1.0]
    text = files[1].read_text()
    assert "| noise alone |  | 1.0100 | 1.0040 |" in text
    assert "- something to know" in text
    for plot in files[2:]:
        assert f"({plot.name})" in text
    assert files[2].read_text().count("<svg") == 1
    assert files[4].read_bytes().startswith(b"\x89PNG")


def test_the_same_evaluation_gives_the_same_bytes(predictions, tmp_path):
    first = write_card(tmp_path / "m.pt", METADATA, predictions, "x")
    before = [file.read_bytes() for file in first]
    again = write_card(tmp_path / "m.pt", METADATA, predictions, "x")
    assert [file.read_bytes() for file in again] == before


def test_without_matplotlib_plots_are_refused(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingPartError, match=r"got no matplotlib; .* 'torch-diode\[report\]'"):
        training_curves(tmp_path / "curves.svg", [{"epoch": 1, "loss": 1.0, "list_loss": 1.0}])
    assert list(tmp_path.iterdir()) == []


def test_a_card_overwrites_nothing_but_a_card(predictions, tmp_path):
    write_card(tmp_path / "m.pt", METADATA, predictions, "7 problems")
    check_card(tmp_path / "m.pt", overwrite=True)
    with pytest.raises(FileFaultError, match=r"m\.json: exists already"):
        check_card(tmp_path / "m.pt", overwrite=False)
    for ending in ("json", "md"):
        other = tmp_path / ending / f"m.{ending}"
        other.parent.mkdir()
        other.write_text('{"format": "torch-diode dataset"}')
        with pytest.raises(FileFaultError, match="no model's card"):
            write_card(other.with_suffix(".pt"), METADATA, predictions, "7 problems")
        assert "dataset" in other.read_text()
        assert list(other.parent.iterdir()) == [other]
