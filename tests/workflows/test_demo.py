"""The README's first command on a machine without a GPU."""

import re

import pytest

from tests.scripts import run_script


@pytest.mark.slow
def test_the_demo_compiles_here_and_compares_choices_for_an_h200_with_measured_times(tmp_path):
    page = tmp_path / "report.html"
    page.write_text("of the time before")
    # Where a model knows this CPU too, measuring is what is to be tested.
    ended = run_script(
        "workflows/demo.py", "--output", page, CUDA_VISIBLE_DEVICES="", TORCH_DIODE_MODEL="none"
    )
    assert ended.returncode == 0, ended.stderr
    text = ended.stdout
    assert max(map(len, text.replace(str(page), "report.html").splitlines())) <= 100

    own, far = text.split("4. On an NVIDIA H200")
    assert "5 of 5 problems" in own
    chosen = re.findall(r"^ *(\d+) +mm:[\dx]+:float32:nt +(aten|onednn) ", own, re.MULTILINE)
    assert sorted(int(count) for count, _ in chosen) == [6, 6, 24]
    assert len(re.findall(r"^(?:eager|torch\.compile).* \d+\.\d\dx$", own, re.MULTILINE)) == 3
    assert "The results agree" in own

    assert "48 matmuls in 6 layers" in far
    counts = re.findall(r"^ *(\d+) .*b?mm [\dx]+ n[nt] ", far, re.MULTILINE)
    assert sorted(map(int, counts)) == [6, 6, 6, 6, 24]
    totals = re.search(
        r"(\d+) of them are in the data .*\s.* (\d+) µs with ATen, (\d+) with .* (\d+) with", far
    )
    assert totals is not None, text
    number, _aten, ours, best = map(int, totals.groups())
    assert number == 30
    assert best <= ours
    assert str(page) in text
    assert page.read_text(encoding="utf-8").lower().startswith("<!doctype html>")
    assert text.split("Next, ")[1].split("torch-diode ")[1:] == [
        "tune program.py\n    ",
        "run program.py\n    ",
        "explain program.py\n",
    ]
