import pytest

from tests.cli.program import inside
from tests.cli.test_app import commands

SCREEN = 50


def test_the_commands_are_grouped_and_described_without_a_cut():
    text = inside("--help").out
    for group in ("Use it:", "Tune for this machine:", "Collect timings:", "Train and", "Look:"):
        assert f"\n{group}" in text
    assert "..." not in text.partition("Use it:")[2]


@pytest.mark.parametrize("command", sorted(commands()))
def test_the_help_of_a_command_fits_a_screen(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    text = inside(*command.split(), "--help").out
    assert "Example: torch-diode" in text
    assert len(text.splitlines()) <= SCREEN


def test_rare_options_are_named_and_described_on_demand():
    brief, whole = inside("train", "--help").out, inside("train", "--help-all").out
    assert "--weight-decay" in brief
    assert "Weight decay (0.001)" not in brief
    assert "Weight decay (0.001)" in whole
