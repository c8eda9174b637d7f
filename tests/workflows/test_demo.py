"""The README's first command, as a person without a GPU sees it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DEMO = Path(__file__).parents[2] / "workflows" / "demo.py"


@pytest.fixture(scope="module")
def shown(tmp_path_factory) -> tuple[str, Path]:
    page = tmp_path_factory.mktemp("demo") / "report.html"
    ended = subprocess.run(
        [sys.executable, DEMO, "--output", page],
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout, page


def test_every_matmul_of_the_transformer_is_decided(shown):
    text, _ = shown
    assert "48 matmuls in 6 layers" in text
    counts = re.findall(r"^ *(\d+) .*(?:mm|bmm):[\dx]+:bfloat16:n[nt] ", text, re.MULTILINE)
    assert sorted(map(int, counts)) == [6, 6, 6, 6, 24]


def test_choices_are_held_against_what_was_measured(shown):
    text, _ = shown
    found = re.search(r"The (\d+) of them .* (\d+) µs with ATen, (\d+) µs\s.* (\d+) µs", text)
    assert found is not None, text
    number, _aten, ours, best = map(int, found.groups())
    assert number == 30
    assert best <= ours
    assert text.count("not recorded") == 3


def test_the_report_is_written_and_named(shown):
    text, page = shown
    assert str(page) in text
    assert page.read_text(encoding="utf-8").lower().startswith("<!doctype html>")
