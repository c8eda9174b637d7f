"""Plot and tables of the README, from the results of the live benchmarks.

    python benchmarks/front_page.py            # writes both
    python benchmarks/front_page.py --check    # only checks that the table is up to date

Reads `results/selection_live.json`, `results/models_live.json` and `results/cpu_models.json`,
draws `results/selection_live.svg`, and writes the tables between markers in the README.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from _live import RESULTS
from _selection import DEFAULT, DIODE, LOG_NORMAL, PLAIN, REAL_MODELS, TUNED, Row, ratios

from torch_diode.files.atomic import replacing, write_text
from torch_diode.types.candidate import ATEN
from torch_diode.types.errors import DiodeError, FileFaultError

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
BEGIN, END = "<!-- measured -->", "<!-- measured: end -->"
CPU_BEGIN, CPU_END = "<!-- measured on a CPU -->", "<!-- measured on a CPU: end -->"
CPU_VARIANTS = {
    "torch-diode": "torch-diode",
    "frozen": "freezing",
    "max-autotune, frozen": "`max-autotune`, freezing",
    "torch-diode, frozen": "torch-diode, freezing",
}
LABELS = {
    ATEN: "torch.compile, ATen",
    DEFAULT: "max-autotune",
    DIODE: "torch-diode",
    TUNED: "torch-diode, max-autotune",
}
COLOURS = {ATEN: "#c4502e", DEFAULT: "#6b7280", DIODE: "#1763b6", TUNED: "#2e8b57"}
_COMPILED = {ATEN: PLAIN, DEFAULT: DEFAULT, DIODE: DIODE, TUNED: TUNED}
"""Methods of the cold part that compile a kernel."""


def table(selection: dict[str, Any], models: dict[str, Any] | None) -> str:
    """The table in Markdown."""
    found = selection["summary"]
    lines = [
        f"| {selection['gpu'].partition(',')[0]}, torch {selection['torch']} | {LOG_NORMAL} sizes "
        f"| shapes of {REAL_MODELS} |",
        "| --- | --- | --- |",
    ]
    ratios = (
        (DIODE, "best", "torch-diode's GPU time over the best known"),
        (DIODE, ATEN, "over ATen, which a plain `torch.compile` runs"),
        (DIODE, DEFAULT, "over what `max-autotune` picks"),
        (TUNED, "best", "torch-diode with `max-autotune`, over the best known"),
        (DEFAULT, "best", "`max-autotune` without torch-diode, over the best known"),
    )
    for method, over, text in ratios:
        lines.append(f"| {text} | {_both(found, method, over)} |")
        if (method, over) == (DIODE, "best"):
            lines.append(f"| its 99th percentile; the worst | {_tails(found, method, over)} |")
    seconds, tried = found["compile seconds"], found["kernels benchmarked"]
    shown = [_number(seconds[f"{m}, mean"], 2) for m in (PLAIN, DIODE, TUNED, DEFAULT)]
    lines += [
        "",
        "| to compile one matmul, caches empty | plain | torch-diode "
        "| torch-diode, `max-autotune` | `max-autotune` |",
        "| --- | --- | --- | --- | --- |",
        f"| seconds, mean | {' | '.join(shown)} |",
        f"| over plain, geometric mean | {_over_plain(seconds)} |",
        f"| kernels benchmarked, mean | 0 | 0 | {_number(tried[TUNED], 1)} "
        f"| {_number(tried[DEFAULT], 1)} |",
    ]
    if models and models["summary"]["models"]:
        lines += ["", *_of_models(models)]
    return "\n".join(lines)


def _both(found: dict[str, Any], method: str, over: str) -> str:
    """Mean ratio on both sets, with the number of problems, since not all methods ran on all."""
    parts = (found[name][f"{method} over {over}"] for name in (LOG_NORMAL, REAL_MODELS))
    return " | ".join(
        f"{part['geomean']:.3f} ({part['problems']})" if part["problems"] else "–" for part in parts
    )


def _tails(found: dict[str, Any], method: str, over: str) -> str:
    parts = (found[name][f"{method} over {over}"] for name in (LOG_NORMAL, REAL_MODELS))
    return " | ".join(f"{_number(p['p99'], 2)}; {_number(p['most'], 2)}" for p in parts)


def _over_plain(seconds: dict[str, Any]) -> str:
    """Compile time over plain torch's, by whether a kernel is compiled."""
    over, compiled = f"{DIODE} over {PLAIN}", seconds["a template compiled"]
    parts = (
        ("ATen kept", "ATen stays", seconds["problems"] - compiled, seconds["share of ATen"]),
        ("a template compiled", "a kernel is compiled", compiled, 1 - seconds["share of ATen"]),
    )
    cells = (
        f"{_number(seconds[f'{over}, {name}'], 2)} where {text} ({share:.0%}; {count} timed)"
        for name, text, count, share in parts
    )
    tuned = (_number(seconds[f"{method} over {PLAIN}"], 1) for method in (TUNED, DEFAULT))
    return f"1 | {_number(seconds[over], 2)}: {', '.join(cells)} | {' | '.join(tuned)}"


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def _of_models(models: dict[str, Any]) -> Iterator[str]:
    found, means = models["summary"]["models"], models["summary"]["geomean"]
    ratios = (
        ("gpu over reduce-overhead", "GPU time over `reduce-overhead`", 3),
        ("gpu over max-autotune", "over `max-autotune`", 3),
        ("compile over reduce-overhead", "compile time over `reduce-overhead`", 2),
        ("max-autotune compile over", "`max-autotune`'s compile time over torch-diode's", 1),
        ("memory over reduce-overhead", "peak memory over `reduce-overhead`", 2),
    )
    columns = [each for each in ratios if means.get(each[0]) is not None]
    seen = {name: sum(row.get(name) is not None for row in found.values()) for name in means}
    titles = [
        "whole models, torch-diode with `reduce-overhead`",
        *(title for _, title, _ in columns),
    ]
    yield f"| {' | '.join(titles)} |"
    yield f"| {' | '.join('---' for _ in titles)} |"
    for name, row in {**found, "geometric mean": means}.items():
        cells = [_number(row.get(column), digits) for column, _, digits in columns]
        if "noise" in row:
            cells[0] += f" ± {row['noise']:.3f}"
        else:
            few = (f" (of {seen[name]})" if seen[name] < len(found) else "" for name, *_ in columns)
            cells = [cell + text for cell, text in zip(cells, few, strict=True)]
        yield f"| {name} | {' | '.join(cells)} |"


def plot(selection: dict[str, Any], path: Path) -> None:
    """Plot the slowdown of each method against the best known, over all problems."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    rows: list[Row] = selection["rows"]
    # Problems that all methods were measured on.
    common = [row for row in rows if all(ratios([row], method, "best") for method in LABELS)]
    figure = Figure(figsize=(7.2, 3.8), layout="constrained")
    axes = figure.subplots()
    for method, label in LABELS.items():
        values = sorted(ratio for ratio, _, _ in ratios(common, method, "best"))
        shares = [100 * (i + 1) / len(values) for i in range(len(values))]
        seconds = selection["summary"]["compile seconds"][f"{_COMPILED[method]}, mean"]
        axes.step(
            shares,
            values,
            where="pre",
            color=COLOURS[method],
            lw=1.8,
            label=f"{label}: {seconds:.2g} s",
        )
    axes.set(
        xlabel=f"% of {len(common)} matmuls never trained on",
        ylabel="GPU time over the best known",
        xlim=(0, 100),
        ylim=(0.98, 2.0),
    )
    axes.grid(visible=True, color="#e5e7eb", lw=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(title="and mean time to compile", frameon=False, loc="upper left")
    with (
        replacing(path) as file,
        rc_context({"svg.hashsalt": "torch-diode", "svg.fonttype": "none"}),
    ):
        figure.savefig(file, format="svg", metadata={"Date": None})


def cpu_table(results: dict[str, Any]) -> str:
    """Whole models on a CPU over plain torch.compile, in Markdown."""
    cpu, summary = results["cpu"], results["summary"]
    found = next(iter(summary.values()))  # the most threads come first
    times, seconds = found["time over plain"], found["compile seconds over plain"]
    named = f"{cpu['name']}, {cpu['threads']} threads, torch {results['torch']}, float32"
    lines = [
        f"| {named}: time over plain `torch.compile` | {' | '.join(CPU_VARIANTS.values())} |",
        f"| --- |{' --- |' * len(CPU_VARIANTS)}",
    ]
    rows = {name: row for name, row in times.items() if name not in ("geomean", "models")}
    for name, row in {**rows, "geometric mean": times["geomean"]}.items():
        lines.append(f"| {name} | {_cells(row)} |")
    return "\n".join([*lines, f"| compile seconds over plain | {_cells(seconds['geomean'])} |"])


def _cells(row: dict[str, float]) -> str:
    return " | ".join(_number(row.get(variant), 2) for variant in CPU_VARIANTS)


def put_in(text: str, made: str, begin: str = BEGIN, end: str = END) -> str:
    """Text of a README with the table between two markers replaced."""
    before, _, rest = text.partition(begin)
    _, mark, after = rest.partition(end)
    if not mark:
        raise FileFaultError(f"got no {begin} and {end}; expected both, with the table between")
    return f"{before}{begin}\n{made}\n{end}{after}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--check", action="store_true", help="only check; exit code 1 if it is out of date"
    )
    parser.add_argument("--readme", type=Path, default=README)
    parser.add_argument("--plot", type=Path, default=RESULTS / "selection_live.svg")
    given = parser.parse_args()
    selection = json.loads((RESULTS / "selection_live.json").read_text())
    whole = RESULTS / "models_live.json"
    models = json.loads(whole.read_text()) if whole.exists() else None
    text = given.readme.read_text()
    try:
        wanted = put_in(text, table(selection, models))
        cpu = json.loads((RESULTS / "cpu_models.json").read_text())
        wanted = put_in(wanted, cpu_table(cpu), CPU_BEGIN, CPU_END)
    except DiodeError as fault:
        print(f"error: {given.readme}: {fault}", file=sys.stderr)
        return 2
    if given.check:
        return int(wanted != text)
    plot(selection, given.plot)
    write_text(given.readme, wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())
