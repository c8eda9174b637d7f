from __future__ import annotations

from tests import samples
from torch_diode.cli import progress
from torch_diode.cli.progress import CollectionProgress


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
