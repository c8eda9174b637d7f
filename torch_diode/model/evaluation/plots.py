"""Plots of a training and of an evaluation, as files; they need matplotlib, which is an extra.

Figures are made without pyplot: nothing global is touched, and no display is looked for.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from torch_diode.files.atomic import replacing
from torch_diode.model.evaluation.regret import KS, Times
from torch_diode.model.evaluation.scoring import Evaluation
from torch_diode.types.errors import MissingPartError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MODEL, _ATEN, _OTHER, _THIRD, _BAND = "#1763b6", "#c4502e", "#6b7280", "#2e8b57", "#d7dde5"
_SLICES = ("op=", "precision=", "layout=", "size=", "rows=")


def training_curves(path: str | os.PathLike[str], history: Sequence[dict[str, float]]) -> None:
    """Losses and validation regret by epoch."""
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
    for axes in (left, right):
        _dress(axes)
    _save(figure, path)


def regret_curve(path: str | os.PathLike[str], found: Evaluation) -> None:
    """Regret@k of the model and of what it is held against, over the band that is noise."""
    figure = _figure(5.6, 3.6)
    axes = figure.subplots()
    if found.noise:
        axes.fill_between(KS, _above(found.noise), color=_BAND, label="noise alone")
    axes.plot(
        KS, _above([s.geomean for s in found.model["all"]]), "o-", color=_MODEL, label="model"
    )
    single = {"ATen alone": found.aten}
    colours = iter((_OTHER, _THIRD))
    for name, slices in found.baselines.items():
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
    _dress(axes)
    _save(figure, path)


def slice_bars(path: str | os.PathLike[str], found: Evaluation) -> None:
    """Regret@1 of the model in each slice, and ATen's."""
    names = [n for n in found.model if n.startswith(_SLICES) and "," not in n]
    figure = _figure(6.0, 0.6 + 0.24 * max(len(names), 4))
    axes = figure.subplots()
    places = np.arange(len(names))
    values = _above([found.model[name][0].geomean for name in names])
    axes.barh(places, values, color=_MODEL, height=0.62, label="model")
    timed = [(i, found.aten[name][0].geomean) for i, name in enumerate(names) if name in found.aten]
    if timed:
        axes.plot(
            _above([v for _, v in timed]), [i for i, _ in timed], "D", ms=4, color=_ATEN,
            label="ATen alone", ls="none",
        )  # fmt: skip
    axes.set_yticks(places, names)
    axes.invert_yaxis()
    axes.set(xlabel="regret@1: slower than the best, %")
    _dress(axes)
    _save(figure, path)


def predicted_against_measured(
    path: str | os.PathLike[str], measured: Times, predicted: Times
) -> None:
    """All rows as densities; a point on the line is a time that was predicted exactly."""
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
    """Percent above the best; none is drawn at a hundredth of a percent, so that a logarithm can
    show it."""
    return [max(100 * (value - 1), 0.01) for value in values]


def _figure(width: float, height: float) -> Figure:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingPartError(
            "plots: got no matplotlib; expected it for plots; pip install 'torch-diode[report]'"
        ) from None
    return Figure(figsize=(width, height), dpi=100, layout="constrained")


def _dress(axes: Axes) -> None:
    axes.grid(alpha=0.25, lw=0.6)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, fontsize=8)


def _save(figure: Figure, path: str | os.PathLike[str]) -> None:
    """The same figure gives the same bytes: no date, no random names within."""
    from matplotlib import rc_context

    form = Path(path).suffix.lstrip(".")
    metadata: dict[str, Any] = {"Date": None} if form == "svg" else {"Software": None}
    settings: Any = {"svg.hashsalt": "torch-diode", "svg.fonttype": "none"}
    with rc_context(settings), replacing(path) as temporary:
        figure.savefig(temporary, format=form, metadata=metadata)
