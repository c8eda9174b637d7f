"""The scripts that count which configs win, and make a solution and a manifest."""

import json

from tests.files.test_earlier_release import EARLIER
from tests.samples import ATEN, BIASED, LARGE, LINEAR, SMALL
from tests.scripts import ROOT, run_inside
from torch_diode import Dataset, MMShape, Solution, Timing
from torch_diode.files.datasets import write_dataset

OTHER = MMShape("mm", 64, 64, 64)


def timings(path):
    """The small config wins two problems of mm, the large one a problem of each op."""
    third = MMShape("mm", 96, 64, 64)
    times = {LINEAR: (3, 2, 1), OTHER: (9, 1, 2), third: (9, 1, 2), BIASED: (1, 5, 4)}
    listed = [
        Timing("nvidia-h200", problem, candidate, float(time))
        for problem, row in times.items()
        for candidate, time in zip((ATEN, SMALL, LARGE), row, strict=True)
    ]
    write_dataset(Dataset.from_timings(listed), path)
    return path


def test_the_configs_that_win_are_counted_per_op(tmp_path):
    ended = run_inside("workflows/winning_configs.py", timings(tmp_path / "t.parquet"))
    rows = [line.split() for line in ended.stdout.splitlines()[2:]]
    assert [row[:5] for row in rows] == [
        ["addmm", "1", "100.0%", "128", "256"],
        ["mm", "2", "66.7%", "32", "64"],
        ["mm", "1", "33.3%", "128", "256"],
    ]


def test_a_solution_has_the_configs_that_win_most_often(tmp_path):
    output = tmp_path / "solution.json"
    ended = run_inside(
        *("workflows/max_autotune_solution.py", timings(tmp_path / "t.parquet")),
        *(EARLIER / "dataset.json", "--output", output, "--configs", "1"),
    )
    assert ended.stdout == f"{output}: 3 configs of addmm, bmm, mm\n"
    solution = Solution.from_dict(json.loads(output.read_text()))
    first = {config.op: dict(config.fields)["block_m"] for config in solution.configs}
    assert first == {"addmm": 64, "bmm": 64, "mm": 64}


def test_the_manifest_names_every_shipped_model(tmp_path):
    run_inside("workflows/model_manifest.py", tmp_path / "manifest.json")
    entries = json.loads((tmp_path / "manifest.json").read_text())["models"]
    files = {path.relative_to(ROOT / "trained_models").as_posix(): path.stat().st_size
             for path in (ROOT / "trained_models").rglob("*.pt")}  # fmt: skip
    assert {entry["path"]: entry["bytes"] for entry in entries} == files
