"""The README's table and plot are those of the committed results."""

import json
import subprocess
from xml.etree import ElementTree

import pytest

from tests.scripts import ROOT, load_script, run_inside


def run(*options: str) -> subprocess.CompletedProcess[str]:
    return run_inside("benchmarks/front_page.py", *options)


def test_the_readme_has_the_measured_numbers_and_others_are_detected(tmp_path):
    done = run("--check")
    assert done.returncode == 0, done.stderr or "run benchmarks/front_page.py"
    text = (ROOT / "README.md").read_text()
    changed = tmp_path / "README.md"
    changed.write_text(text.replace("whole models | 0.", "whole models | 1.", 1))
    assert run("--check", "--readme", str(changed)).returncode == 1
    changed.write_text("# nothing measured here\n")
    done = run("--check", "--readme", str(changed))
    assert done.returncode == 2
    assert "expected both" in done.stderr


def test_the_plot_names_every_method(tmp_path):
    pytest.importorskip("matplotlib")
    readme, plot, tables = (tmp_path / name for name in ("README.md", "plot.svg", "tables.md"))
    readme.write_text((ROOT / "README.md").read_text())
    written = ("--readme", str(readme), "--plot", str(plot), "--tables", str(tables))
    assert run(*written).returncode == 0
    assert readme.read_text() == (ROOT / "README.md").read_text()
    assert tables.read_text() == (ROOT / "benchmarks/results/tables.md").read_text()
    shown = " ".join(ElementTree.parse(plot).getroot().itertext())
    for label in ("ATen", "max-autotune: ", "torch-diode: ", "torch-diode, max-autotune: "):
        assert label in shown


def test_threads_peers_and_single_matmuls_have_their_place_where_they_were_measured():
    tables = load_script("benchmarks", "_result_tables")
    times = {"torch-diode": 0.8, "max-autotune, frozen": 0.5, "onnxruntime": 0.9}
    part = {
        "time over plain": {"bert": times, "geomean": times, "models": dict.fromkeys(times, 1)},
        "compile seconds over plain": {"geomean": {"torch-diode": 1.0}},
    }
    cpu = {"hardware": "amd-zen5", "torch": "2.13.0", "summary": {"1 threads": part}}
    assert "| AMD Zen 5, 1 thread, torch 2.13.0, float32" in tables.cpu_tables(cpu)
    assert "| bert | 0.80 | 0.50 | 0.90 |" in tables.cpu_tables(cpu)
    selection = json.loads((ROOT / "benchmarks/results/selection_live.json").read_text())
    summary = tables.summary_table(selection, None, cpu)
    assert "| AMD Zen 5, 1 thread: 1 whole models | 0.80 | 1.60 | 1.0 | – |" in summary
    assert "still ahead in bert (0.80 against 0.50 of plain)" in summary
    assert "over plain: ONNX Runtime 0.90" in summary
    single = {"problems": 5, "torch-diode over plain": {"geomean": 0.71}}
    found = {"hardware": "amd-zen5", "summary": {"2 threads, frozen": single}}
    assert "| 2 threads, frozen | 5 | 0.710 |" in tables.cpu_selection_table(found)
