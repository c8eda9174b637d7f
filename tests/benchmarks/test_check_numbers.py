"""The numbers of README, documentation and cards are those of the results files."""

import json

import pytest

from tests.scripts import ROOT, load_script, run_inside

check = load_script("benchmarks", "check_numbers")
CARD = ROOT / "trained_models/matmul/nvidia-h200/matmul.md"
DATA_CARD = ROOT / "diode_datasets/matmul/nvidia-h200/README.md"


def test_all_numbers_are_those_of_the_results():
    done = run_inside("benchmarks/check_numbers.py")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("text", ["It is 1.37 times as fast.", "| model | 0.87 |"])
def test_a_number_written_by_hand_is_detected(text):
    assert len(list(check.by_hand(text, "page.md"))) == 1


def test_releases_code_and_tables_of_a_script_are_passed_over():
    measured = f"{check.BEGIN}\n| 0.87 |\n{check.END}"
    text = f"With torch 2.13.0 or Python 3.10.\n\n```text\n1.37\n```\n\n`x == 1.5`\n\n{measured}\n"
    assert list(check.by_hand(text, "page.md")) == []


def test_a_models_card_with_another_number_is_detected():
    text = CARD.read_text(encoding="utf-8")
    data = json.loads(CARD.with_suffix(".json").read_text(encoding="utf-8"))
    assert list(check.not_in_card(text, data, CARD)) == []
    (fault,) = check.not_in_card(text.replace("| 1.0110 |", "| 1.0911 |", 1), data, CARD)
    assert "1.0911" in fault


def test_a_data_card_that_miscounts_a_file_is_detected():
    text = DATA_CARD.read_text(encoding="utf-8")
    assert list(check.miscounted(text, DATA_CARD)) == []
    (fault,) = check.miscounted(text.replace("1,497,640", "1,497,641"), DATA_CARD)
    assert "sweep-1.parquet has 1,497,640 timings" in fault
