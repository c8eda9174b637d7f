#!/usr/bin/env python3
"""Draw and count the contents of a data set: the plots and tables of its card.

    python workflows/dataset_card.py diode_datasets/matmul/nvidia-h200

Reads `train/` and `validation/` there, writes `plots/*.svg` and `counts.md` beside them. The card
itself (`README.md`) is written by hand and shows both.
"""

from __future__ import annotations

import argparse
import itertools
from collections import Counter
from pathlib import Path

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from torch_diode.files.atomic import write_text
from torch_diode.files.datasets import read_dataset
from torch_diode.types.dataset import Dataset
from torch_diode.types.problem import MMShape

Floats = npt.NDArray[np.float64]
PRECISIONS = ("bfloat16", "float16", "tf32", "float32")
COLOURS = {"train": "#4477aa", "vendor": "#999999", "validation": "#cc6677"}


class Part:
    """Numbers of a data set per problem."""

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset
        self.ids = np.asarray(dataset.problems.ids)
        self.problems: list[MMShape] = [dataset.problem(r) for r in dataset.problems.first.tolist()]
        self.times = dataset.table.column("time_us").to_numpy().astype(float)
        self.spread = dataset.table.column("spread").to_numpy().astype(float)
        self.repeats = dataset.table.column("repeats").to_numpy()
        self.templates = np.array(dataset.table.column("template").to_pylist())
        order = np.lexsort((np.where(np.isnan(self.times), np.inf, self.times), self.ids))
        first = np.r_[True, self.ids[order][1:] != self.ids[order][:-1]]
        self.best = order[first]
        self.counts = np.bincount(self.ids)[self.ids[self.best]]
        self.of = [self.dataset.problem(int(row)) for row in self.best]

    @property
    def flops(self) -> Floats:
        """Floating-point operations per problem."""
        return np.array([p.flops for p in self.problems], dtype=float)

    def standard_error(self) -> Floats:
        """Relative standard error of each problem's best time, for normal samples."""
        best = self.best
        return np.asarray(1.09 * self.spread[best] / 0.6745 / np.sqrt(self.repeats[best]))


def count_table(title: str, part: Part) -> str:
    """Problems and timings by op and precision, as Markdown."""
    problems = Counter((p.op, p.precision) for p in part.problems)
    sizes = np.bincount(part.ids)
    timings: Counter[tuple[str, str]] = Counter()
    for problem, row in zip(part.problems, part.dataset.problems.first.tolist(), strict=True):
        timings[problem.op, problem.precision] += int(sizes[part.ids[row]])
    lines = [
        f"**{title}**: {len(part.problems):,} problems, {len(part.dataset):,} timings.",
        "",
        "| op | " + " | ".join(PRECISIONS) + " |",
        "| --- " * (len(PRECISIONS) + 1) + "|",
    ]
    for op in ("mm", "addmm", "bmm", "baddbmm"):
        cells = [f"{problems[op, p]:,} / {timings[op, p]:,}" for p in PRECISIONS]
        lines.append(f"| {op} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def draw_sizes(parts: dict[str, Part], path: Path) -> None:
    """Plot the sizes of the problems and the times of their best kernels."""
    figure = Figure(figsize=(9, 3))
    axes = figure.subplots(1, 2)
    for name, part in parts.items():
        axes[0].hist(
            np.log10(part.flops), bins=60, density=True, histtype="step", color=COLOURS[name],
            label=name,
        )  # fmt: skip
        best = part.times[part.best]
        axes[1].hist(
            np.log10(best[best > 0]), bins=60, density=True, histtype="step", color=COLOURS[name],
            label=name,
        )  # fmt: skip
    axes[0].set(xlabel="log10 of operations", ylabel="share", title="size of the problems")
    axes[1].set(xlabel="log10 of microseconds", title="fastest candidate")
    axes[0].legend(frameon=False)
    save(figure, path)


def draw_noise(parts: dict[str, Part], path: Path) -> None:
    """Plot the error of the best time against the time."""
    figure = Figure(figsize=(5, 3))
    axis = figure.subplots()
    for name in ("train", "validation"):
        part = parts[name]
        best = part.times[part.best]
        known = (part.counts > 1) & (part.repeats[part.best] > 2)
        edges = np.logspace(np.log10(4), 3, 14)
        middle, values = [], []
        for low, high in itertools.pairwise(edges):
            inside = known & (best >= low) & (best < high)
            if inside.sum() >= 5:
                middle.append((low * high) ** 0.5)
                values.append(100 * np.median(part.standard_error()[inside]))
        axis.plot(middle, values, marker="o", color=COLOURS[name], label=name)
    axis.set(xscale="log", yscale="log", xlabel="best time, µs", ylabel="standard error, %")
    axis.set_title("how well the best time is known (median)")
    axis.legend(frameon=False)
    save(figure, path)


def draw_winners(part: Part, path: Path) -> None:
    """Plot the share of each template among the fastest, by time."""
    figure = Figure(figsize=(5, 3))
    axis = figure.subplots()
    best = part.times[part.best]
    names = ("aten", "triton::mm", "triton::mm_persistent_tma", "triton::bmm", "decompose_k")
    edges = [0, 6, 10, 20, 50, 100, np.inf]
    labels = ["<6", "6–10", "10–20", "20–50", "50–100", ">100"]
    bottom = np.zeros(len(labels))
    winners = part.templates[part.best]
    for name, colour in zip(
        names, ("#bbbbbb", "#4477aa", "#66ccee", "#228833", "#aa3377"), strict=True
    ):
        share = []
        for low, high in itertools.pairwise(edges):
            inside = (best >= low) & (best < high)
            share.append(100 * np.mean(winners[inside] == name) if inside.any() else 0)
        axis.bar(labels, share, bottom=bottom, color=colour, label=name)
        bottom += np.array(share)
    axis.set(xlabel="best time, µs", ylabel="% of problems", title="fastest template, validation")
    axis.legend(frameon=False, fontsize=7, loc="upper left", bbox_to_anchor=(1, 1))
    save(figure, path)


def draw_ties(part: Part, path: Path) -> None:
    """Plot the number of candidates nearly as fast as the best."""
    figure = Figure(figsize=(5, 3))
    axis = figure.subplots()
    floor = np.zeros(part.ids.max() + 1)
    floor[part.ids[part.best]] = part.times[part.best]
    ratio = part.times / floor[part.ids]
    for factor, colour in ((1.02, "#4477aa"), (1.05, "#228833"), (1.10, "#cc6677")):
        near = np.bincount(part.ids[ratio <= factor], minlength=len(floor))
        values = np.sort(near[np.unique(part.ids)])
        axis.plot(values, np.linspace(0, 100, len(values)), color=colour, label=f"within {factor}")
    axis.set(xscale="log", xlabel="candidates", ylabel="% of problems with at most so many")
    axis.set_title("candidates close to the best, validation")
    axis.legend(frameon=False)
    save(figure, path)


def save(figure: Figure, path: Path) -> None:
    """Save as SVG without a date, so that the same data give the same file."""
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    mpl.rcParams.update({"svg.hashsalt": "torch-diode", "font.size": 8, "axes.spines.top": False})
    mpl.rcParams["axes.spines.right"] = False
    train = Part(read_dataset(folder / "train"))
    validation = Part(read_dataset(folder / "validation"))
    alone = np.bincount(train.ids)[train.ids] == 1
    vendor = Part(Dataset(train.dataset.table.filter(alone)))
    rest = Part(Dataset(train.dataset.table.filter(~alone)))
    parts = {"train": rest, "vendor": vendor, "validation": validation}
    plots = folder / "plots"
    plots.mkdir(exist_ok=True)
    draw_sizes(parts, plots / "sizes.svg")
    draw_noise(parts, plots / "noise.svg")
    draw_winners(validation, plots / "winners.svg")
    draw_ties(validation, plots / "ties.svg")
    error = validation.standard_error()
    text = [
        "<!-- made by workflows/dataset_card.py: problems / timings -->",
        count_table("Training, several candidates a problem", rest),
        count_table("Training, ATen alone", vendor),
        count_table("Validation", validation),
        f"Standard error of the best time, validation: median {100 * np.median(error):.2f}%, "
        f"95th percentile {100 * np.percentile(error, 95):.2f}%; at most 0.5% on "
        f"{100 * np.mean(error <= 0.005):.0f}% of the problems.",
    ]
    write_text(folder / "counts.md", "\n\n".join(text) + "\n")
    print("\n\n".join(text))


if __name__ == "__main__":
    main()
