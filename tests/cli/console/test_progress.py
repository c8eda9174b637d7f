import pytest

from torch_diode.cli.console import progress
from torch_diode.cli.console.progress import ConsoleProgress
from torch_diode.toolkit.progress import Progress


def timing(done: int, total: int = 10) -> Progress:
    return Progress("Timing", done, total, "problems", {"timings": 7 * done})


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")


def lines(capsys) -> list[str]:
    return capsys.readouterr().out.splitlines()


def test_without_a_terminal_there_is_a_line_every_few_seconds(capsys, monkeypatch):
    monkeypatch.setattr(progress, "_SECONDS_PER_LINE", 0.0)
    with ConsoleProgress() as show:
        for done in (4, 5, 6):
            show(timing(done))
    assert lines(capsys)[1:] == [
        "Timing: 5 of 10 problems, 35 timings, 0 s, 0 s to go",
        "Timing: 6 of 10 problems, 42 timings, 0 s, 0 s to go",
    ]


def test_a_stage_ends_with_a_line_and_may_start_again(capsys):
    with ConsoleProgress() as show:
        for _ in range(2):
            show(timing(0))
            show(timing(10))
        show(timing(3))
        show(timing(4))  # the stage ends early
    assert [line.split(",")[0] for line in lines(capsys)] == [
        "Timing: 10 of 10 problems",
        "Timing: 10 of 10 problems",
        "Timing: 4 of 10 problems",
    ]


def test_every_reported_regret_is_a_line(capsys):
    values = {"loss": 0.25, "regret@1": 1.5, "regret@3": 1.25}
    with ConsoleProgress() as show:
        show(Progress("Training", 1, 4, "epochs", {"loss": 0.5}))
        show(Progress("Training", 2, 4, "epochs", values))
    (line,) = lines(capsys)
    assert line.startswith(
        "Training: 2 of 4 epochs, loss 0.2500, regret@1 1.5000, regret@3 1.2500, 0 s"
    )


def test_on_a_terminal_there_is_a_bar_and_messages_stay(capsys, terminal):
    with ConsoleProgress() as show:
        show(timing(0))
        show(Progress(message="a note"))
        show(timing(2))
    shown = capsys.readouterr().out
    assert "ETA" in shown
    assert "a note" in shown
    assert "Timing: 2 of 10 problems, 14 timings" in shown
