"""`torch-diode validate-max-autotune`: a model's first choices against configs settled before."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from torch_diode.cli.commands.data.convert import refuse_same
from torch_diode.cli.commands.training import validate_model as shared
from torch_diode.cli.console.output import print_json, print_line, print_table
from torch_diode.model.shipped import SHIPPED

ANALYSIS = Path("model_performance_analysis_by_op.json")


def validate_max_autotune(
    dataset: shared.DatasetPath,
    max_autotune_solution: Annotated[
        Path,
        typer.Option(
            help="Solution file; where there is none, it is made of the dataset's fastest configs."
        ),
    ],
    model: shared.Model = SHIPPED,
    batch_size: shared.BatchSize = 256,
    hardware_name: shared.HardwareName = None,
    op_name: shared.OpName = None,
    score: shared.Score = "auto",
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where the analysis goes.")
    ] = ANALYSIS,
    as_json: Annotated[bool, typer.Option("--json", help="Print the analysis as JSON.")] = False,
) -> None:
    """Hold a model's first 1, 3, 5, 10 and 20 candidates against a solution's configs.

    A ratio under 1 says that the model's are faster. Writes model_performance_analysis_by_op.json.

    Example: torch-diode validate-max-autotune --model my_model.pt --dataset validation.msgpack
    --max-autotune-solution solution.json

    \b
    op    problems   solution   with ATen       @1       @3       @5      @10      @20  ...
    all          5     1.0661      1.0000   0.9561   0.9441   0.9441   0.9441   0.9441
    mm           5     1.0661      1.0000   0.9561   0.9441   0.9441   0.9441   0.9441
    """
    from torch_diode.files.json import write_json
    from torch_diode.toolkit.max_autotune import KS, analyse, derive, solution_for
    from torch_diode.toolkit.validate import validate

    refuse_same(output, max_autotune_solution, dataset)
    solution = solution_for(max_autotune_solution)
    found = validate(
        model, dataset, hardware_name, tuple(op_name or ()), score, batch_size, compare=False
    )
    if solution is None:
        solution = derive(found, max_autotune_solution)
        told = (
            f"{max_autotune_solution}: there was none; written, with the fastest config timed on "
            "each problem, which is what an exhaustive max-autotune would settle on"
        )
        if not as_json:
            print_line(told)
    analysis = analyse(found, solution, max_autotune_solution)
    write_json(output, analysis, 3)
    if as_json:
        print_json(analysis)
        return
    print_line(f"Scored on {analysis['judged_on']}.")
    rows = []
    for name, part in (("all", analysis["all"]), *analysis["by_op"].items()):
        ratios = [f"{part['model'][f'top_{k}']['ratio']:.4f}" for k in KS]
        share = f"{part['model']['top_1']['no_slower']:.0%}"
        with_aten = part["solution"]["with_aten_regret"]
        regrets = (f"{part['solution']['regret']:.4f}", f"{with_aten:.4f}" if with_aten else "-")
        rows.append((name, part["problems"], *regrets, *ratios, share))
    head = ("op", "problems", "solution", "with ATen", *(f"@{k}" for k in KS), "no slower @1")
    print_line("Solution: its best config over the best of all; @k: the model's best of k over it.")
    print_table(head, rows, right="l" + "r" * 9)
    for note in analysis["notes"]:
        print_line(f"Note: {note}.")
    print_line(f"{output}: the analysis by operation")
