"""`torch-diode validate-model`: how good a model is on a dataset."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from torch_diode.cli.console.output import print_json, print_line
from torch_diode.model.shipped import SHIPPED

if TYPE_CHECKING:
    from torch_diode.toolkit.validate import Validation

Model = Annotated[str, typer.Option(help="Model file, or `shipped` for the one that comes along.")]
DatasetPath = Annotated[Path, typer.Option(help="Dataset file or directory of shards.")]
BatchSize = Annotated[int, typer.Option(help="Problems predicted at once.", min=1)]
HardwareName = Annotated[str | None, typer.Option(help="Only this hardware's timings.")]
OpName = Annotated[list[str] | None, typer.Option(help="Only this operation; may be given again.")]
Score = Annotated[str, typer.Option(help="Problems to score: auto, held-out (of training) or all.")]


def validate_model(
    dataset: DatasetPath,
    model: Model = SHIPPED,
    batch_size: BatchSize = 256,
    top_n_worst: Annotated[int, typer.Option(help="Worst cases to list.", min=0)] = 10,
    hardware_name: HardwareName = None,
    op_name: OpName = None,
    score: Score = "auto",
    write_card: Annotated[
        bool, typer.Option("--write-card", help="Write the card and its plots beside the model.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Score a model: regret@k with baselines and noise, slices, error of times, worst cases.

    On the data it was trained on, a model is scored on the problems held out of its training.

    Example: torch-diode validate-model --model my_model.pt --dataset validation.parquet

    \b
    $ torch-diode validate-model --dataset diode_datasets/matmul/nvidia-h200/validation
    Regret@k, geometric mean over problems
                   problems       @1       @3       @5      @10      @20   p95@1   p99@1   max@1
    model               530   1.0110   1.0028   1.0016   1.0005   1.0002   1.067   1.137   1.302
    noise alone               1.0015   1.0011   1.0011   1.0010   1.0009
    ATen alone          530   1.1292        -        -        -        -   1.672   2.179   2.680
    analytical          530   1.1089   1.0614   1.0496   1.0295   1.0175   1.515   2.253   3.815
    default list        530   1.0255        -        -        -        -   1.129   1.220   1.320
    ...
    """
    from torch_diode.toolkit.validate import validate

    found = validate(model, dataset, hardware_name, tuple(op_name or ()), score, batch_size)
    if write_card:
        from torch_diode.model.card import write_card as write

        write(found.path, found.metadata, found.judged, found.judged_on, found.notes)
    if as_json:
        print_json(as_data(found, top_n_worst))
    else:
        show(found, top_n_worst)


def show(found: Validation, top_n_worst: int) -> None:
    """The scores as a person reads them."""
    from torch_diode.cli.console import score_tables

    evaluation = found.judged.evaluation
    print_line(f"{found.path}: {found.metadata.kind} model of {found.metadata.hardware}")
    print_line(f"Scored on {found.judged_on}.")
    score_tables.print_regret(evaluation)
    score_tables.print_slices(evaluation)
    score_tables.print_errors(evaluation)
    score_tables.print_worst(found.judged, found.dataset, top_n_worst)
    score_tables.say_notes(found.notes)
    if evaluation.worse:
        print_line(f"ATen alone is better in: {', '.join(evaluation.worse)}.")


def as_data(found: Validation, top_n_worst: int) -> dict[str, Any]:
    """The scores as JSON has them."""
    from torch_diode.cli.console import score_tables

    return {
        "model": str(found.path),
        "dataset": str(found.source),
        "judged_on": found.judged_on,
        "hardware": found.metadata.hardware,
        "notes": found.notes,
        "scores": found.judged.evaluation.to_dict(),
        "worst_decisions": score_tables.worst_decisions(found.judged, found.dataset, top_n_worst),
        "worst_predictions": score_tables.worst_predictions(
            found.judged, found.dataset, top_n_worst
        ),
    }
