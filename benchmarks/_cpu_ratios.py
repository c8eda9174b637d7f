"""Ratios of the CPU model benchmark: summary, table and plot."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from _cpu_models import MODELS
from _cpu_variants import DIODE, DIODE_FROZEN, EAGER, FROZEN, PEERS, PLAIN, TUNED, VARIANTS
from _live import Row, as_table, geomean

from torch_diode.files.atomic import replacing

LARGEST_DIFFERENCE = 1e-3
"""Relative difference to eager's float32 from which a result is wrong, and its time worthless."""
NAMES = (*VARIANTS, *PEERS)
LABELS = {
    EAGER: "eager",
    DIODE: "torch-diode",
    FROZEN: "freezing",
    DIODE_FROZEN: "torch-diode, freezing",
    TUNED: "max-autotune, freezing",
    "onnxruntime": "ONNX Runtime",
    "openvino": "OpenVINO",
    "zentorch": "AMD zentorch",
}
COLOURS = {
    EAGER: "#d1d5db", DIODE: "#1763b6", FROZEN: "#c4502e", DIODE_FROZEN: "#0b2f5c",
    TUNED: "#6b7280", "onnxruntime": "#2e8b57", "openvino": "#b8860b", "zentorch": "#8e44ad",
}  # fmt: skip


def summary(rows: Sequence[Row]) -> dict[str, Any]:
    """By number of threads: ratios over plain torch.compile per model, and geometric means."""
    return {
        f"{threads} threads": {
            "time over plain": _ratios(rows, threads, "ms"),
            "compile seconds over plain": _ratios(rows, threads, "compile_s"),
            "peak memory over plain": _ratios(rows, threads, "peak_mb"),
            "compile seconds, mean": _mean_seconds(rows, threads),
            "largest difference to eager": max(
                (r["difference"] for r in _of(rows, threads)), default=None
            ),
            "wrong results": [
                f"{row['model']}, {row['variant']}: {row['difference']:.2g}"
                for row in rows
                if row["threads"] == threads and _is_wrong(row)
            ],
        }
        for threads in sorted({row["threads"] for row in rows}, reverse=True)
    }


def _of(rows: Sequence[Row], threads: int) -> list[Row]:
    """Rows with a time and a right result."""
    own = [row for row in rows if row["threads"] == threads and "ms" in row]
    return [row for row in own if not _is_wrong(row)]


def _is_wrong(row: Row) -> bool:
    return not row.get("difference", 0.0) <= LARGEST_DIFFERENCE


def _ratios(rows: Sequence[Row], threads: int, column: str) -> dict[str, dict[str, float]]:
    """Per model and variant; the geometric mean of a variant is over the models it ran, with their
    number beside it."""
    found: dict[str, dict[str, float]] = {}
    for model in MODELS:
        own = {row["variant"]: row for row in _of(rows, threads) if row["model"] == model}
        plain = own.get(PLAIN)
        if plain is None:
            continue
        found[model] = {
            name: row["over"][0] if column == "ms" else round(row[column] / plain[column], 4)
            for name, row in own.items()
            if name != PLAIN
            and not (name == EAGER and column == "compile_s")
            and row.get(column)
            and plain.get(column)
        }
    by_variant = {n: [r[n] for r in found.values() if n in r] for n in NAMES}
    means = {n: round(geomean(values), 4) for n, values in by_variant.items() if values}
    return {**found, "geomean": means, "models": {n: len(by_variant[n]) for n in means}}


def _mean_seconds(rows: Sequence[Row], threads: int) -> dict[str, float]:
    seconds = {
        n: [r["compile_s"] for r in _of(rows, threads) if r["variant"] == n]
        for n in NAMES
        if n != EAGER
    }
    return {n: round(sum(values) / len(values), 2) for n, values in seconds.items() if values}


def show(rows: Sequence[Row]) -> None:
    """Print all cases, then the ratios."""
    columns = ("ms", "compile_s", "peak_mb", "difference")
    table: list[list[Any]] = [["model", "variant", "threads", "over plain", "noise", *columns]]
    for row in rows:
        over = row.get("over", [None, None])
        cells = [row.get(column) for column in columns]
        table.append([row["model"], row["variant"], row["threads"], *over, *cells])
    print(as_table(table))
    for row in rows:
        if "fault" in row:
            print(f"{row['model']}, {row['variant']}: {row['fault']}")
    for name, found in summary(rows).items():
        times = found["time over plain"]
        shown = [n for n in NAMES if n in times["geomean"]]
        lines = [[label, *(values.get(n) for n in shown)] for label, values in times.items()]
        print(f"\n{as_table([[f'time over plain, {name}', *shown], *lines])}")
        print(f"largest difference to eager: {found['largest difference to eager'] or 0:.1e}")
        print("\n".join(f"wrong result: {text}" for text in found["wrong results"]))


def plot(head: Row, rows: Sequence[Row], path: Path) -> None:
    """Plot the time of each variant over plain torch.compile, per model, most threads."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    threads = max(row["threads"] for row in rows)
    found = _ratios(rows, threads, "ms")
    seconds = _mean_seconds(rows, threads)
    means, _ = found.pop("geomean"), found.pop("models")
    lines = {**found, "geometric mean": means}
    figure = Figure(figsize=(7.2, 0.42 * len(lines) + 1.7), layout="constrained")
    axes = figure.subplots()
    places = range(len(lines), 0, -1)
    for name, label in LABELS.items():
        points = [(v[name], y) for v, y in zip(lines.values(), places, strict=True) if name in v]
        if points and name != EAGER:
            text = f"{label}: {seconds[name]:.2g} s"
            x, y = zip(*points, strict=True)
            axes.plot(x, y, "o", color=COLOURS[name], ms=7 if name == DIODE else 5, label=text)
    axes.axvline(1.0, color="#111827", lw=1.0, label=f"torch.compile: {seconds[PLAIN]:.2g} s")
    axes.axhline(1.5, color="#e5e7eb", lw=0.8)
    axes.set(
        xlabel=f"time over plain torch.compile, {head['hardware']}, {threads} threads, float32",
        xlim=(0, None),
        yticks=list(places),
        yticklabels=list(lines),
    )
    axes.grid(visible=True, axis="x", color="#e5e7eb", lw=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(
        *axes.get_legend_handles_labels(),
        title="and mean time to compile",
        frameon=False,
        loc="outside upper center",
        ncols=3,
    )
    with (
        replacing(path) as file,
        rc_context({"svg.hashsalt": "torch-diode", "svg.fonttype": "none"}),
    ):
        figure.savefig(file, format="svg", metadata={"Date": None})
