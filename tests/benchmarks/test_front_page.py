"""The README's table and plot are those of the committed results."""

import subprocess
from xml.etree import ElementTree

import pytest

from tests.scripts import ROOT, run_inside


def run(*options: str) -> subprocess.CompletedProcess[str]:
    return run_inside("benchmarks/front_page.py", *options)


def test_the_readme_has_the_measured_numbers_and_others_are_detected(tmp_path):
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


def test_the_plot_names_every_method(tmp_path):
    pytest.importorskip("matplotlib")
    readme, plot = tmp_path / "README.md", tmp_path / "plot.svg"
    readme.write_text((ROOT / "README.md").read_text())
    assert run("--readme", str(readme), "--plot", str(plot)).returncode == 0
    assert readme.read_text() == (ROOT / "README.md").read_text()
    shown = " ".join(ElementTree.parse(plot).getroot().itertext())
    for label in ("ATen", "max-autotune: ", "torch-diode: ", "torch-diode, max-autotune: "):
        assert label in shown
