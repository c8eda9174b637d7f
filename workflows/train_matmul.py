#!/usr/bin/env python3
"""Trains the matmul model from the shipped timings and says how good it is on held-out problems.

    python workflows/train_matmul.py --output trained_models/matmul/nvidia-h200/matmul.pt

One core, a few minutes. Prints the scores beside those of ATen alone and of the analytical
heuristic, and the regret that noise alone would give; writes the model, its card (`.json`) and its
training curves (`.csv`). Exits with 1, and writes no model, if ATen alone is better in any op or
precision.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np
import torch

from torch_diode.files.atomic import write_text
from torch_diode.files.datasets import read_dataset
from torch_diode.hardware import known
from torch_diode.heuristics.analytical import AnalyticalHeuristic
from torch_diode.model.checkpoint import save_model
from torch_diode.model.evaluation import Score, problem_slices, regret_arrays, sliced_scores
from torch_diode.model.feature_table import FeatureTable, feature_table
from torch_diode.model.provenance import card, dataset_noise_floor, describe
from torch_diode.model.scoring import Evaluation, evaluate, predict_times
from torch_diode.model.training import TrainingOptions, split_table, train, write_history
from torch_diode.types.candidates import NUMBER_FIELDS, Candidates
from torch_diode.types.dataset import Dataset
from torch_diode.types.errors import DiodeError
from torch_diode.types.hardware import Hardware

DATA = Path(__file__).parent.parent / "diode_datasets/matmul/nvidia-h200/train"


def main() -> int:
    arguments = parse()
    torch.set_num_threads(arguments.threads)
    hardware = known(arguments.hardware)
    dataset = read_dataset(arguments.dataset)
    table = feature_table(dataset, hardware)
    shape = {"hidden": arguments.hidden, "layers": arguments.layers}
    options = TrainingOptions(
        kind=arguments.kind, shape=shape, epochs=arguments.epochs, seed=arguments.seed
    )
    parts = split_table(table, options)
    print(f"{len(table.group)} timings of {len(table.problem)} problems", flush=True)
    begun = time.monotonic()
    state = arguments.output.with_suffix(".state") if arguments.resume else None
    trained = train(parts, options, lambda row: say(row, begun), state)
    print(f"trained in {time.monotonic() - begun:.0f} s", flush=True)
    found = evaluate(parts.test, predict_times(trained.network, parts.test))
    floor = dataset_noise_floor(parts.test, dataset)
    show(found, analytical_scores(parts.test, dataset, hardware), floor)
    worse = [n for n in found.worse_than_aten() if n.startswith(("all", "op=", "precision="))]
    if worse:
        print(f"no model written: ATen alone is better in {', '.join(worse)}", file=sys.stderr)
        return 1
    metadata = describe(trained, parts.train, dataset, hardware, found)
    save_model(arguments.output, trained.network.state_dict(), metadata)
    text = json.dumps(card(metadata, found, floor), indent=1, sort_keys=True)
    write_text(arguments.output.with_suffix(".json"), text + "\n")
    write_history(arguments.output.with_suffix(".csv"), trained.history)
    if state is not None:
        state.unlink(missing_ok=True)
    print(f"wrote {arguments.output}, {arguments.output.stat().st_size} bytes")
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dataset", type=Path, default=DATA, help="a file, or a folder of shards")
    parser.add_argument("--output", type=Path, required=True, help="a .pt or .safetensors file")
    parser.add_argument("--hardware", default="nvidia-h200")
    parser.add_argument("--kind", choices=("base", "deep"), default="deep")
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=TrainingOptions.epochs)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--resume", action="store_true", help="keep the state, go on from it")
    return parser.parse_args()


def say(row: dict[str, float], begun: float) -> None:
    numbers = "  ".join(f"{name} {value:.4f}" for name, value in row.items() if name != "epoch")
    print(f"epoch {row['epoch']:.0f}  {numbers}  {time.monotonic() - begun:.0f} s", flush=True)


def show(found: Evaluation, analytical: dict[str, list[Score]], floor: list[float]) -> None:
    print(f"noise alone: {' '.join(f'{value:.4f}' for value in floor)} at 1, 3, 5, 10, 20")
    head = ("slice", "problems", "@1", "@3", "@5", "p99@1", "ATen", "analytical@1")
    print("{:32} {:>8} {:>7} {:>7} {:>7} {:>7} {:>7} {:>12}".format(*head))
    for name, s in found.model.items():
        aten, model = found.aten[name][0].geomean, [score.geomean for score in s[:3]]
        numbers = (*model, s[0].p99, aten, analytical[name][0].geomean)
        cells = " ".join(f"{number:7.4f}" for number in numbers[:-1])
        print(f"{name:32} {s[0].problems:8} {cells} {numbers[-1]:12.4f}")
    for name, error in found.errors.items():
        print(f"error of times, {name}: rmse {error['rmse']:.4f}, median {error['median']:.4f}")


def analytical_scores(
    part: FeatureTable, dataset: Dataset, hardware: Hardware
) -> dict[str, list[Score]]:
    """The baseline that needs no training, on the same rows."""
    heuristic = AnalyticalHeuristic()
    template, names = dataset.codes("template")
    fields = {name: dataset.values(name)[part.rows].astype(np.int32) for name in NUMBER_FIELDS}
    candidates = Candidates(tuple(names), template[part.rows].astype(np.int32), fields)
    predicted = np.empty(len(part.rows))
    order = np.argsort(part.group, kind="stable")
    heads = np.flatnonzero(np.diff(part.group[order])) + 1
    for rows in np.split(order, heads):
        problem = dataset.problem(int(part.rows[rows[0]]))
        predicted[rows] = heuristic.predict_us(problem, candidates.take(rows), hardware)
    ids, values = regret_arrays(part.group, part.time_us, predicted)
    return sliced_scores(values, problem_slices(part.arrays.take(ids), part.roofline[ids]))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except DiodeError as fault:
        print(fault, file=sys.stderr)
        sys.exit(2)
