"""`torch-diode validate-max-autotune`: compare a model's first choices with a solution."""

from __future__ import annotations

from pathlib import Path

import typer

from torch_diode.cli.commands.training import validate_model as shared
from torch_diode.cli.console.output import (
    note_progress,
    print_json,
    print_line,
    print_notes,
    print_table,
)
from torch_diode.cli.options import filters
from torch_diode.cli.options.default_paths import VALIDATION, written_dataset
from torch_diode.cli.options.parameters import OVERWRITE, SHIPPED_MODEL, flag, option, required

ANALYSIS = Path("model_performance_analysis_by_op.json")


def validate_max_autotune(
    context: typer.Context,
    max_autotune_solution: Path = required(
        "Solution file; if missing, written with the dataset's fastest configs."
    ),
    dataset: Path | None = shared.VALIDATION_DATA,
    model: str = SHIPPED_MODEL,
    batch_size: int = shared.BATCH_SIZE,
    hardware_name: str | None = filters.HARDWARE_NAME,
    op_name: list[str] | None = filters.OP_NAME,
    score: str = filters.SCORE,
    output: Path = option("Where the analysis goes.", "--output", "-o", default=ANALYSIS),
    as_json: bool = flag("Print the analysis as JSON.", "--json"),
    overwrite: bool = OVERWRITE,
) -> None:
    """Compare a model's first candidates with a solution's configs.

    A ratio below 1 means that the model's are faster. Writes model_performance_analysis_by_op.json.

    Example: torch-diode validate-max-autotune --model my_model.pt --dataset validation.msgpack
    --max-autotune-solution solution.json

    \b
    op    problems   solution   with ATen       @1       @3       @5      @10      @20  ...
    all          5     1.0661      1.0000   0.9561   0.9441   0.9441   0.9441   0.9441
    mm           5     1.0661      1.0000   0.9561   0.9441   0.9441   0.9441   0.9441
    """
    from torch_diode.files.atomic import refuse_existing
    from torch_diode.files.json import write_json
    from torch_diode.toolkit import max_autotune as api
    from torch_diode.toolkit.datasets import refuse_same

    timings = written_dataset(context, dataset, VALIDATION)
    refuse_same(output, max_autotune_solution, timings)
    refuse_existing(output, overwrite)
    result = api.validate_max_autotune(
        timings,
        max_autotune_solution,
        model,
        hardware=hardware_name,
        ops=op_name or (),
        score=score,
        batch_size=batch_size,
        progress=note_progress,
    )
    write_json(output, result.to_dict(), 3, overwrite)
    if as_json:
        print_json(result.to_dict())
        return
    print_line(f"Scored on {result.scored_on}.")
    rows = []
    for name, part in (("all", result.overall), *result.by_op.items()):
        ratios = [f"{top.ratio:.4f}" for top in part.model.values()]
        with_aten = part.solution_with_aten_regret
        regrets = (f"{part.solution_regret:.4f}", f"{with_aten:.4f}" if with_aten else "-")
        rows.append((name, part.problems, *regrets, *ratios, f"{part.model[1].no_slower:.0%}"))
    ks = (f"@{k}" for k in result.overall.model)
    head = ("op", "problems", "solution", "with ATen", *ks, "no slower @1")
    print_line("Solution: its best config over the best of all; @k: the model's best of k over it.")
    print_table(head, rows, right="l" + "r" * 9)
    print_notes(result.notes)
    print_line(f"{output}: the analysis by operation")
