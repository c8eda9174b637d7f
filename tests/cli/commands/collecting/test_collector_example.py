"""The command's refusals; tests/integration/autotune has the collector, and
`packaging/check_wheels.py` runs the example."""

from tests.cli.program import told_off


def test_its_files_are_not_overwritten(tmp_path):
    (tmp_path / "collector_example_table.json").write_text("{}")
    said = told_off("--device", "cpu", "collector-example", "--output-dir", tmp_path)
    assert "collector_example_table.json: exists already" in said
    assert len(list(tmp_path.iterdir())) == 1
