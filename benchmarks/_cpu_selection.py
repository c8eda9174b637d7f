"""Summary, table and plot of the CPU selection benchmark."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from _cpu_ways import DIODE, NAMED, PLAIN, TUNED
from _live import Row, as_table, geomean, quantile

from torch_diode.files.atomic import replacing
from torch_diode.types.candidate import ONEDNN, ONEDNN_PACKED

BEST, ALWAYS = "best", "always oneDNN"
PAIRS = ((DIODE, BEST), (DIODE, PLAIN), (PLAIN, BEST), (ALWAYS, BEST), (TUNED, BEST))
LABELS = {PLAIN: "torch.compile", ALWAYS: "always oneDNN", TUNED: "max-autotune", DIODE: DIODE}
COLOURS = {PLAIN: "#c4502e", TUNED: "#6b7280", DIODE: "#1763b6", ALWAYS: "#2e8b57"}


def time_of(row: Row, way: str) -> float | None:
    """Microseconds of a way; None if it was not timed. Where oneDNN has no kernel, always choosing
    it means plain torch."""
    times = row["times"]
    if way == BEST:
        return min((found[0] for found in times.values()), default=None)
    if way == ALWAYS:
        own = ONEDNN_PACKED if row["frozen"] else ONEDNN
        way = own if own in times else PLAIN
    return times[way][0] if way in times else None


def ratios(rows: Sequence[Row], way: str, over: str) -> list[float]:
    """Ratio of each row that has both times."""
    pairs = [(time_of(row, way), time_of(row, over)) for row in rows]
    return [one / other for one, other in pairs if one and other]


def summary(rows: Sequence[Row]) -> dict[str, Any]:
    """All numbers, by threads, kind of weight and dtype, with the number of problems behind."""
    parts: dict[str, list[Row]] = {}
    for row in rows:
        weight = "frozen" if row["frozen"] else "unfrozen"
        dtype = row["problem"].split(":")[2]
        for name in (weight, f"{weight}, {dtype}"):
            parts.setdefault(f"{row['threads']} threads, {name}", []).append(row)
    return {name: _of(parts[name]) for name in sorted(parts)}


def _of(rows: Sequence[Row]) -> dict[str, Any]:
    found: dict[str, Any] = {"problems": len(rows)}
    for way, over in PAIRS:
        values = ratios(rows, way, over)
        if values:
            found[f"{way} over {over}"] = {
                "problems": len(values),
                "geomean": round(geomean(values), 4),
                "p99": round(quantile(values, 0.99), 4),
                "most": round(max(values), 4),
                "above 1.05": sum(value > 1.05 for value in values),
            }
    seconds = {way: [r["compile_s"][way] for r in rows if way in r["compile_s"]] for way in NAMED}
    found["compile seconds, mean"] = {
        way: round(math.fsum(values) / len(values), 4) for way, values in seconds.items() if values
    }
    took = [row["decision_us"] for row in rows if row["decision_us"] is not None]
    found["decisions"], found["decision_us"] = len(took), quantile(took, 0.5)
    found["wrong"] = sum(len(row["wrong"]) for row in rows)
    return found


def show(found: dict[str, Any]) -> None:
    """Print the geometric means, and the rest below."""
    names = [f"{way} over {over}" for way, over in PAIRS]
    lines = [
        [name, part["problems"], *(part[n]["geomean"] if n in part else None for n in names)]
        for name, part in found.items()
    ]
    print(as_table([["", "problems", *names], *lines]))
    for name, part in found.items():
        seconds = ", ".join(f"{n} {s:.3g}" for n, s in part["compile seconds, mean"].items())
        print(
            f"{name}: {part['decisions']} decisions, {part['decision_us']:.0f} us each; "
            f"seconds to compile: {seconds}; worst over plain "
            f"{part.get(f'{DIODE} over {PLAIN}', {}).get('most', math.nan):.3g}; "
            f"{part['wrong']} wrong results"
        )


def plot(head: Row, rows: Sequence[Row], path: Path) -> None:
    """Plot the slowdown of each method against the best known, unfrozen and frozen."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 3.8), layout="constrained")
    for axes, frozen in zip(figure.subplots(1, 2, sharey=True), (False, True), strict=True):
        own = [row for row in rows if row["frozen"] == frozen]
        for way, label in LABELS.items():
            values = sorted(ratios(own, way, BEST))
            shares = [100 * (i + 1) / len(values) for i in range(len(values))]
            if values:
                axes.step(shares, values, where="pre", color=COLOURS[way], lw=1.8, label=label)
        axes.set(
            xlabel=f"% of {len(own)} matmuls, {'frozen' if frozen else 'any'} weight",
            xlim=(0, 100),
            ylim=(0.95, 3.0),
        )
        axes.grid(visible=True, color="#e5e7eb", lw=0.8)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, loc="upper left")
    figure.axes[0].set_ylabel(f"time over the best known, {head['hardware']}")
    with (
        replacing(path) as file,
        rc_context({"svg.hashsalt": "torch-diode", "svg.fonttype": "none"}),
    ):
        figure.savefig(file, format="svg", metadata={"Date": None})
