from __future__ import annotations

from tests import samples
from torch_diode.cli.console import progress
from torch_diode.cli.console.progress import CollectionProgress, TrainingProgress


def test_without_a_terminal_there_are_plain_lines(capsys, monkeypatch):
    monkeypatch.setattr(progress, "_SECONDS_A_LINE", 0.0)
    with CollectionProgress(total=10, done=4) as shown:
        shown.tell(samples.dataset())
        shown.tell(samples.dataset())
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" in ")[0] for line in lines] == [
        "5 of 10 problems, 7 timings",
        "6 of 10 problems, 14 timings",
        "6 of 10 problems, 14 timings",
    ]
    assert all(line.endswith(" s to go") for line in lines)


def test_where_nothing_was_done_nothing_is_said(capsys):
    with CollectionProgress(total=3, done=3):
        pass
    assert capsys.readouterr().out == ""


def test_on_a_terminal_there_is_a_bar(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    with CollectionProgress(total=10, done=0) as shown:
        shown.tell(samples.dataset())
    assert "problems" in capsys.readouterr().out


def test_training_is_a_line_for_each_epoch_that_was_scored(capsys):
    with TrainingProgress(epochs=4) as shown:
        shown.tell({"epoch": 1, "loss": 0.5})
        shown.tell({"epoch": 2, "loss": 0.25, "regret@1": 1.5, "regret@3": 1.25, "regret@5": 1.0})
    (line,) = capsys.readouterr().out.splitlines()
    expected = "epoch 2 of 4: loss 0.2500  regret@1 1.5000  regret@3 1.2500  regret@5 1.0000"
    assert line.startswith(expected)


def test_training_on_a_terminal_is_a_bar(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    with TrainingProgress(epochs=4) as shown:
        shown.tell({"epoch": 2, "regret@1": 1.5})
    assert "regret@1 1.5000" in capsys.readouterr().out


def test_heads_are_told_of_before_the_first_epoch(capsys, monkeypatch):
    monkeypatch.setattr(progress, "_SECONDS_A_LINE", 0.0)
    with TrainingProgress(epochs=4) as shown:
        shown.tell({"head": 2, "heads": 57})
    assert capsys.readouterr().out.startswith("Training: 0 of 4 epochs, ATen 2 of 57  ")


def test_epochs_of_several_networks_are_counted_together(capsys, monkeypatch):
    monkeypatch.setattr(progress, "_SECONDS_A_LINE", 0.0)
    with TrainingProgress(epochs=9, several=True) as shown:
        shown.tell({"epoch": 4, "regret@1": 1.5}, "going on")
        shown.tell({"epoch": 1, "loss": 0.5}, "another")
        shown.tell({"head": 3, "heads": 57}, "a third")
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in lines] == [
        "Training: 4 of 9 epochs, regret@1 1.5000",
        "Training: 5 of 9 epochs, regret@1 1.5000",
        "Training: 5 of 9 epochs, ATen 3 of 57",
    ]
