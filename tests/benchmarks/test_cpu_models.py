"""The benchmark of whole models on a CPU, with tiny models."""

import importlib.util

import pytest
import torch

from tests.benchmarks.dry_run import dry_run
from tests.scripts import load_script

models = load_script("benchmarks", "_cpu_models")
calls = load_script("benchmarks", "_models_calls")
turns = load_script("benchmarks", "_cpu_turns")
ratios = load_script("benchmarks", "_cpu_ratios")

OPTIONS = ("--rule", "--threads", "1", "--models", "recommender", "--variants")


@pytest.mark.slow
def test_variants_agree_with_eager_and_a_run_is_resumed(tmp_path):
    output = tmp_path / "models.json"
    data, printed = dry_run("cpu_models.py", output, *OPTIONS, "torch-diode")
    rows = {row["variant"]: row for row in data["rows"]}
    assert set(rows) == {"plain", "torch-diode"}
    for row in rows.values():
        assert row["difference"] < 1e-5
        assert row["compile_s"] > 0
        assert row["rounds"] >= turns.LEAST_ROUNDS
    assert {chosen for _, chosen, _ in rows["torch-diode"]["decisions"]} == {"onednn"}
    means = data["summary"]["1 threads"]["time over plain"]["geomean"]
    assert means["torch-diode"] == pytest.approx(rows["torch-diode"]["over"][0], abs=1e-4)
    assert "time over plain" in printed
    assert output.with_suffix(".svg").exists()

    again, _ = dry_run("cpu_models.py", output, *OPTIONS, "torch-diode")
    assert again["rows"] == data["rows"]


@pytest.mark.parametrize("name", models.MODELS)
def test_a_model_is_the_same_in_every_process(name):
    if name != "recommender x128" and importlib.util.find_spec("transformers") is None:
        pytest.skip("needs transformers")
    first, second = (calls.step_of(models.build(name, 3, tiny=True))() for _ in range(2))
    assert calls.difference(first, second) == 0
    assert all(torch.isfinite(value).all() for value in first)


def test_the_ratio_is_of_low_quantiles_and_its_noise_between_halves_of_the_rounds():
    base = [[2.0, 9.0], [2.0, 2.0], [50.0, 2.0], [2.0, 2.0]]
    assert turns.over([[1.0, 1.0], [1.0, 8.0], [1.0, 1.0], [1.0, 1.0]], base) == [0.5, 0.0]
    assert turns.over([[1.0], [1.1], [1.0], [1.1]], base)[1] > 0.04


def test_a_variant_with_wrong_results_counts_in_no_mean():
    def row(variant, ms, difference):
        common = {"model": "bert-base 1x128", "threads": 2, "rounds": 5, "over": [ms / 2, 0.0]}
        return {**common, "variant": variant, "ms": ms, "difference": difference, "compile_s": 1.0}

    rows = [row("plain", 2.0, 1e-6), row("torch-diode", 1.0, 1e-6), row("zentorch", 0.5, 1.5)]
    rows.append(row("openvino", 0.5, None))
    found = ratios.summary(rows)["2 threads"]
    assert found["time over plain"]["geomean"] == {"torch-diode": 0.5}
    assert found["wrong results"] == [
        "bert-base 1x128, zentorch: 1.5",
        "bert-base 1x128, openvino: None",
    ]
