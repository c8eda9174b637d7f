from __future__ import annotations

from torch_diode.model.evaluation.plots import training_curves

HISTORY = [
    {"epoch": 0, "regret@1": 1.2, "regret@3": 1.1, "regret@5": 1.05},
    {"epoch": 1, "loss": 0.5, "list_loss": 2.0},
    {
        "epoch": 2,
        "loss": 0.4,
        "list_loss": 1.0,
        "regret@1": 1.1,
        "regret@3": 1.05,
        "regret@5": 1.01,
    },
]


def test_curves_as_svg_and_png(tmp_path):
    training_curves(tmp_path / "a.svg", HISTORY)
    text = (tmp_path / "a.svg").read_text()
    assert "regret on validation problems" in text
    assert "list_loss" in text
    training_curves(tmp_path / "a.png", HISTORY)
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.png", "a.svg"]
