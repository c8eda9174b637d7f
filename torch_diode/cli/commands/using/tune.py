"""`torch-diode tune`: measure what a program needs on this machine, and use it from then on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from torch_diode.cli.console.output import print_line, print_notes, print_table
from torch_diode.cli.options.parameters import flag, option

if TYPE_CHECKING:
    from torch_diode.tuning.result import TuneResult

_LISTED = 40
_US_PER_MS = 1000


def tune(
    context: typer.Context,
    program: Path | None = typer.Argument(None, help="Python program to run, or -m and a module."),
    shapeset: Path | None = option("Problems of a shape set, instead of a program."),
    minutes: float | None = option("Time to measure; the next run goes on from there."),
    timeout: float | None = option("Seconds after which the program is stopped."),
    quick: bool = flag("Fewer candidates, and less exactly.", "--quick"),
    dry_run: bool = flag("Say what would be measured, and how long it takes.", "--dry-run"),
    output: Path | None = option("Table to write, for elsewhere (.json).", "--output", "-o"),
    overwrite: bool = flag("Replace the output if it exists."),
    model: bool = flag("Also train a model for this machine.", "--model"),
    ray: str | None = option("Address of a Ray cluster of like machines, which measures."),
    listed: bool = flag("List what is kept.", "--list"),
    forgotten: str | None = option("Delete what is kept under this name, or all.", "--forget"),
) -> None:
    """Measure a program's matmuls here, and use the times from now on.

    The program runs once; what follows its name are its own arguments. Run it again: only what is
    new is measured.

    Example: torch-diode tune train.py --steps 1

    Example: torch-diode tune --minutes 5 -m my_package.serve --once
    """
    from torch_diode.cli.console.progress import ConsoleProgress
    from torch_diode.tuning import kept
    from torch_diode.tuning.tune import TuneOptions
    from torch_diode.tuning.tune import tune as run

    if forgotten is not None:
        for folder in kept.forget(forgotten):
            print_line(f"{folder.name}: deleted")
        return
    if listed:
        rows = [(k.folder.name, k.problems, k.bytes / 1e6) for k in kept.list_kept()]
        print_table(("kept", "problems", "MB"), rows, right="lrr")
        return
    options = TuneOptions(
        minutes=minutes,
        timeout=timeout,
        quick=quick,
        dry_run=dry_run,
        output=output,
        overwrite=overwrite,
        model=model,
        ray=ray,
        device=context.obj.device,
        seed=context.obj.seed or 0,
    )
    with ConsoleProgress() as progress:
        result = run(program, context.args, shapeset=shapeset, options=options, progress=progress)
    _print(result, output)


def _print(result: TuneResult, output: Path | None) -> None:
    if result.gains:
        rows = [
            (
                gain.use.count,
                f"{gain.use.problem}{'*' * gain.use.frozen}",
                gain.own_us,
                gain.chosen_us,
                gain.chosen.template if gain.speedup != 1 else "torch's own",
                f"{gain.speedup:.2f}x",
            )
            for gain in result.gains[:_LISTED]
        ]
        columns = ("×", "problem", "torch µs", "µs", "by", "faster")
        print_table(columns, rows, right="rlrrlr")
        if len(result.gains) > _LISTED:
            print_line(f"… and {len(result.gains) - _LISTED:,} more problems")
        if any(gain.use.frozen for gain in result.gains):
            print_line("* with a constant weight, as in frozen graphs")
        own, chosen = result.own_us / _US_PER_MS, result.chosen_us / _US_PER_MS
        print_line(
            f"Its matmuls, all together: {own:,.2f} ms by torch, {chosen:,.2f} ms now, "
            f"{own / chosen:.2f}x as fast"
        )
    if result.waiting:
        waiting = [(t.count, t.problem, len(t.candidates)) for t in result.waiting[:_LISTED]]
        print_table(("×", "to measure", "candidates"), waiting, right="rlr")
        print_line(f"{len(result.waiting):,} problems to measure, about {result.seconds:,.0f} s")
    for reason, count in result.left_out.most_common():
        print_line(f"{count:,} left to torch: {reason}")
    print_notes(result.notes)
    if result.measured or result.reused:
        print_line(f"{result.measured:,} problems measured now, {result.reused:,} before")
    for folder in result.folders:
        if folder.table.exists():
            print_line(f"Kept in {folder.path}, and used from now on")
    if output is not None and result.gains:
        print_line(f"{output}: a table of these problems")
