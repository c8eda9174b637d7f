"""The README's table and plot are those of the committed results."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.scripts import ROOT, load_script, run_script


def run(*options: str) -> subprocess.CompletedProcess[str]:
    return run_script("benchmarks/front_page.py", *options)


def test_the_readme_has_the_measured_numbers_and_others_are_detected(tmp_path: Path) -> None:
    done = run("--check")
    assert done.returncode == 0, done.stderr or "run benchmarks/front_page.py"
    text = (ROOT / "README.md").read_text()
    changed = tmp_path / "README.md"
    changed.write_text(text.replace("over the best known | 1.", "over the best known | 0.", 1))
    assert run("--check", "--readme", str(changed)).returncode == 1
    changed.write_text("# nothing measured here\n")
    done = run("--check", "--readme", str(changed))
    assert done.returncode == 2
    assert "expected both" in done.stderr


def test_the_plot_names_every_method(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    readme, plot = tmp_path / "README.md", tmp_path / "plot.svg"
    readme.write_text((ROOT / "README.md").read_text())
    assert run("--readme", str(readme), "--plot", str(plot)).returncode == 0
    assert readme.read_text() == (ROOT / "README.md").read_text()
    shown = " ".join(ElementTree.parse(plot).getroot().itertext())
    for label in ("ATen", "max-autotune: ", "torch-diode: ", "torch-diode, max-autotune: "):
        assert label in shown


def test_a_missing_measurement_is_a_dash() -> None:
    front_page = load_script("benchmarks", "front_page")
    selection = json.loads((ROOT / "benchmarks/results/selection_live.json").read_text())
    selection["summary"]["compile seconds"]["diode over plain, a template compiled"] = None
    made = front_page.table(selection, {"summary": {"models": {}, "geomean": {}}})
    assert "– where a kernel is compiled" in made
    assert "whole models" not in made
    clean = json.loads((ROOT / "benchmarks/results/selection_live_seed_4.json").read_text())
    made = front_page.table(clean, None)
    assert "| seconds, mean | – | – | – | – |" in made
    assert "| kernels benchmarked, mean | 0 | 0 | – | – |" in made
