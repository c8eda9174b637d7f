"""Plot and tables of the README and the documentation, from the results of the live benchmarks.

    python benchmarks/front_page.py            # writes them
    python benchmarks/front_page.py --check    # only checks that they are up to date

Reads `selection_live.json`, `models_live.json`, `cpu_models.json` and, where it is there,
`cpu_selection.json`; draws `selection_live.svg`, writes the README's table between its markers,
and all tables into `tables.md`, which the documentation includes.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from _live import RESULTS
from _result_tables import cpu_selection_table, cpu_tables, gpu_tables, summary_table
from _selection import DEFAULT, DIODE, PLAIN, TUNED, Row, ratios

from torch_diode.files.atomic import replacing, write_text
from torch_diode.types.candidate import ATEN
from torch_diode.types.errors import DiodeError, FileFaultError

ROOT = Path(__file__).parents[1]
README, TABLES = ROOT / "README.md", RESULTS / "tables.md"
BEGIN, END = "<!-- measured -->", "<!-- measured: end -->"
LABELS = {
    ATEN: "torch.compile, ATen",
    DEFAULT: "max-autotune",
    DIODE: "torch-diode",
    TUNED: "torch-diode, max-autotune",
}
COLOURS = {ATEN: "#c4502e", DEFAULT: "#6b7280", DIODE: "#1763b6", TUNED: "#2e8b57"}
_COMPILED = {ATEN: PLAIN, DEFAULT: DEFAULT, DIODE: DIODE, TUNED: TUNED}
"""Methods of the cold part that compile a kernel."""


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


def put_in(text: str, made: str) -> str:
    """Text of a README with what is between the markers replaced."""
    before, _, rest = text.partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        raise FileFaultError(f"got no {BEGIN} and {END}; expected both, with the table between")
    return f"{before}{BEGIN}\n{made}\n{END}{after}"


def results(name: str) -> dict[str, Any] | None:
    """The results of a benchmark; None where it has not run."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def made() -> tuple[str, str]:
    """The README's table, and the file of all tables."""
    selection, models, cpu = map(results, ("selection_live", "models_live", "cpu_models"))
    single = results("cpu_selection")
    if selection is None or cpu is None:
        raise FileFaultError(f"{RESULTS}: got no selection_live.json and cpu_models.json")
    parts = [gpu_tables(selection, models), cpu_tables(cpu)]
    parts += [cpu_selection_table(single)] if single else []
    return summary_table(selection, models, cpu), "\n\n".join(parts) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--check", action="store_true", help="only check; exit code 1 if it is out of date"
    )
    parser.add_argument("--readme", type=Path, default=README)
    parser.add_argument("--tables", type=Path, default=TABLES)
    parser.add_argument("--plot", type=Path, default=RESULTS / "selection_live.svg")
    given = parser.parse_args()
    text = given.readme.read_text()
    try:
        summary, tables = made()
        wanted = put_in(text, summary)
    except DiodeError as fault:
        print(f"error: {given.readme}: {fault}", file=sys.stderr)
        return 2
    if given.check:
        is_current = given.tables.is_file() and given.tables.read_text() == tables
        return int(wanted != text or not is_current)
    selection = results("selection_live")
    assert selection is not None
    plot(selection, given.plot)
    write_text(given.readme, wanted)
    write_text(given.tables, tables)
    return 0


if __name__ == "__main__":
    sys.exit(main())
