"""The README's first command on a machine without a GPU."""

import re

from tests.scripts import run_script


def test_the_demo_decides_every_matmul_compares_with_measured_times_and_writes_a_report(tmp_path):
    page = tmp_path / "report.html"
    ended = run_script("workflows/demo.py", "--output", page, CUDA_VISIBLE_DEVICES="")
    assert ended.returncode == 0, ended.stderr
    text = ended.stdout
    assert "48 matmuls in 6 layers" in text
    counts = re.findall(r"^ *(\d+) .*(?:mm|bmm):[\dx]+:bfloat16:n[nt] ", text, re.MULTILINE)
    assert sorted(map(int, counts)) == [6, 6, 6, 6, 24]
    totals = re.search(r"The (\d+) of them .* (\d+) µs with ATen, (\d+) µs\s.* (\d+) µs", text)
    assert totals is not None, text
    number, _aten, own, best = map(int, totals.groups())
    assert number == 30
    assert best <= own
    assert text.count("not recorded") == 3
    assert str(page) in text
    assert page.read_text(encoding="utf-8").lower().startswith("<!doctype html>")
