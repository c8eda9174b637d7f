"""`torch-diode validate-model`: score a model on a dataset."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from torch_diode.cli.console.output import note_progress, print_json, print_line, print_notes
from torch_diode.cli.options import filters
from torch_diode.cli.options.default_paths import VALIDATION, written_dataset
from torch_diode.cli.options.parameters import AS_JSON, OVERWRITE, SHIPPED_MODEL, flag, option
from torch_diode.model.registry import SHIPPED

if TYPE_CHECKING:
    from torch_diode.toolkit.validate import Validation

VALIDATION_DATA = option("Dataset file or directory; matmul_validation.<format> if not given.")
BATCH_SIZE = option("Problems predicted at once.", default=256, min=1)
TOP_N_WORST = option("Worst cases to list.", default=10, min=0)


def validate_model(
    context: typer.Context,
    dataset: Path | None = VALIDATION_DATA,
    model: str = SHIPPED_MODEL,
    batch_size: int = BATCH_SIZE,
    top_n_worst: int = TOP_N_WORST,
    hardware_name: str | None = filters.HARDWARE_NAME,
    op_name: list[str] | None = filters.OP_NAME,
    score: str = filters.SCORE,
    write_card: bool = flag("Write the card and its plots beside the model.", "--write-card"),
    as_json: bool = AS_JSON,
    overwrite: bool = OVERWRITE,
) -> None:
    """Score a model on timings, beside baselines.

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
    from torch_diode.model.card import check_card
    from torch_diode.toolkit.validate import validate

    if write_card and model != SHIPPED:
        check_card(Path(model), overwrite)
    result = validate(
        model,
        written_dataset(context, dataset, VALIDATION),
        hardware=hardware_name,
        ops=op_name or (),
        score=score,
        batch_size=batch_size,
        progress=note_progress,
    )
    if write_card:
        result.write_card(overwrite)
    if as_json:
        print_json(result.to_dict(top_n_worst))
    else:
        print_validation(result, top_n_worst)


def print_validation(result: Validation, top_n_worst: int) -> None:
    """Print the scores of a model as tables."""
    from torch_diode.cli.console import score_tables

    print_line(f"{result.model}: {result.metadata.kind} model of {result.metadata.hardware}")
    print_line(f"Scored on {result.scored_on}.")
    score_tables.print_evaluation(result.evaluation)
    score_tables.print_worst(
        result.worst_decisions(top_n_worst), result.worst_predictions(top_n_worst)
    )
    print_notes(result.notes)
    if result.evaluation.worse:
        print_line(f"ATen alone is better in: {', '.join(result.evaluation.worse)}.")
