"""The model benchmark without its GPU: a tiny model, on the CPU."""

import math
from typing import Any

from tests.benchmarks.dry_run import dry_run


def test_a_model_agrees_with_eager_and_a_run_is_resumed(tmp_path):
    output = tmp_path / "models.json"
    options = ("--models", "recommender", "--modes", "reduce-overhead", "max-autotune")
    data, printed = dry_run("models_live.py", output, *options)
    assert "geomean" in printed
    for row in data["rows"]:
        assert row["difference"] < 1e-5
        assert row["compile_s"] > 0
    rows = data["rows"]
    turns = [row for row in rows if "in turn" in row]
    assert [(row["mode"], row["diode"]) for row in turns] == [
        (mode, diode) for mode in ("reduce-overhead", "max-autotune") for diode in (False, True)
    ]
    ratios = data["summary"]["models"][turns[0]["model"]]
    own = turns[1]["over"]
    assert ratios["gpu over reduce-overhead"] == own["reduce-overhead"][0]
    assert ratios["gpu over max-autotune"] == own["max-autotune"][0]
    assert ratios["gpu over the better"] == max(value for value, _ in own.values())
    plain, diode = (seconds(rows, diode, in_turn=False) for diode in (False, True))
    between = diode / math.sqrt(plain * seconds(rows, False, in_turn=True))
    assert math.isclose(ratios["compile over reduce-overhead"], between, rel_tol=1e-6)
    again, _ = dry_run("models_live.py", output, *options)
    assert again["rows"] == data["rows"], "finished cases are not measured again"


def seconds(rows: list[dict[str, Any]], diode: bool, in_turn: bool) -> float:
    (row,) = (
        row
        for row in rows
        if (row["mode"], row["diode"], "in turn" in row) == ("reduce-overhead", diode, in_turn)
    )
    return float(row["compile_s"])
