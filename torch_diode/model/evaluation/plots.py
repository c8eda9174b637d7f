"""Plots of a training and of an evaluation; they need matplotlib, an optional dependency.

Figures are made without pyplot: no global state, and no display.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from torch_diode.files.atomic import replacing
from torch_diode.model.evaluation.regret import KS
from torch_diode.types.errors import MissingPartError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from torch_diode.model.evaluation.regret import Times
    from torch_diode.model.evaluation.scoring import Evaluation

_MODEL, _ATEN, _OTHER, _THIRD, _BAND = "#1763b6", "#c4502e", "#6b7280", "#2e8b57", "#d7dde5"
_SLICES = ("op=", "precision=", "layout=", "size=", "rows=")


def training_curves(path: str | os.PathLike[str], history: Sequence[dict[str, float]]) -> None:
    """Plot losses and validation regret by epoch."""
    figure = _figure(8.0, 3.2)
    left, right = figure.subplots(1, 2)
    epochs = [row["epoch"] for row in history if "loss" in row]
    for name, colour in (("loss", _MODEL), ("list_loss", _OTHER)):
        left.plot(epochs, [row[name] for row in history if "loss" in row], color=colour, label=name)
    left.set(xlabel="epoch", ylabel="training loss", yscale="log")
    scored = [row for row in history if "regret@1" in row]
    for k, colour in zip((1, 3, 5), (_MODEL, _THIRD, _OTHER), strict=True):
        values = [row[f"regret@{k}"] for row in scored]
        right.plot(
            [row["epoch"] for row in scored], values, "o-", ms=3, color=colour, label=f"@{k}"
        )
    right.set(xlabel="epoch", ylabel="regret on validation problems")
    _style(left, right)
    _save(figure, path)


def regret_curve(path: str | os.PathLike[str], evaluation: Evaluation) -> None:
    """Plot regret@k of the model and of the baselines, over the noise floor."""
    figure = _figure(5.6, 3.6)
    axes = figure.subplots()
    if evaluation.noise:
        axes.fill_between(KS, _above(evaluation.noise), color=_BAND, label="noise alone")
    axes.plot(
        KS, _above([s.geomean for s in evaluation.model["all"]]), "o-", color=_MODEL, label="model"
    )
    single = {"ATen alone": evaluation.aten}
    colours = iter((_OTHER, _THIRD))
    for name, slices in evaluation.baselines.items():
        if len(slices["all"]) == len(KS):
            values = _above([s.geomean for s in slices["all"]])
            axes.plot(KS, values, "s--", ms=3, color=next(colours), label=name)
        else:
            single[f"{name}, all benchmarked"] = slices
    for (name, slices), colour in zip(single.items(), (_ATEN, _THIRD), strict=False):
        if slices:
            axes.axhline(
                _above([slices["all"][0].geomean])[0], color=colour, ls=":", lw=1.6, label=name
            )
    axes.set(xlabel="k, candidates tried", ylabel="slower than the best, %", yscale="log")
    axes.set_xticks(KS, [str(k) for k in KS])
    _style(axes)
    _save(figure, path)


def slice_bars(path: str | os.PathLike[str], evaluation: Evaluation) -> None:
    """Plot regret@1 of the model and of ATen by slice."""
    names = [n for n in evaluation.model if n.startswith(_SLICES) and "," not in n]
    figure = _figure(6.0, 0.6 + 0.24 * max(len(names), 4))
    axes = figure.subplots()
    places = np.arange(len(names))
    values = _above([evaluation.model[name][0].geomean for name in names])
    axes.barh(places, values, color=_MODEL, height=0.62, label="model")
    timed = [i for i, name in enumerate(names) if name in evaluation.aten]
    if timed:
        values = _above([evaluation.aten[names[i]][0].geomean for i in timed])
        axes.plot(values, timed, "D", ms=4, color=_ATEN, label="ATen alone", ls="none")
    axes.set_yticks(places, names)
    axes.invert_yaxis()
    axes.set(xlabel="regret@1: slower than the best, %")
    _style(axes)
    _save(figure, path)


def predicted_against_measured(
    path: str | os.PathLike[str], measured: Times, predicted: Times
) -> None:
    """Plot the density of all rows; exact predictions lie on the line."""
    figure = _figure(4.4, 3.8)
    axes = figure.subplots()
    bins = axes.hexbin(
        measured, predicted, xscale="log", yscale="log", bins="log", gridsize=70, cmap="Blues",
        mincnt=1, linewidths=0,
    )  # fmt: skip
    ends = [
        float(min(measured.min(), predicted.min())),
        float(max(measured.max(), predicted.max())),
    ]
    axes.plot(ends, ends, color=_ATEN, lw=0.8)
    axes.set(xlabel="measured, µs", ylabel="predicted, µs")
    figure.colorbar(bins, ax=axes, label="timings")
    _save(figure, path)


def _above(values: Sequence[float]) -> list[float]:
    """Percent above the best, at least 0.01 for the logarithmic scale."""
    return [max(100 * (value - 1), 0.01) for value in values]


def _figure(width: float, height: float) -> Figure:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingPartError(
            "plots: got no matplotlib; expected it for plots; pip install 'torch-diode[report]'"
        ) from None
    return Figure(figsize=(width, height), dpi=100, layout="constrained")


def _style(*plots: Axes) -> None:
    for axes in plots:
        axes.grid(alpha=0.25, lw=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(frameon=False, fontsize=8)


def _save(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Save reproducibly: without a date or random names."""
    from matplotlib import rc_context

    form = Path(path).suffix.lstrip(".")
    metadata: dict[str, Any] = {"Date": None} if form == "svg" else {"Software": None}
    settings: Any = {"svg.hashsalt": "torch-diode", "svg.fonttype": "none"}
    with rc_context(settings), replacing(path) as temporary:
        figure.savefig(temporary, format=form, metadata=metadata)
