"""`torch-diode report`: write an HTML report on a model and a dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from torch_diode.cli.console.output import print_line
from torch_diode.cli.options.parameters import Overwrite
from torch_diode.model.registry import SHIPPED


def report(
    dataset: Annotated[Path, typer.Option(help="Dataset file or directory of shards.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="HTML file to write.")] = Path(
        "report.html"
    ),
    model: Annotated[
        str, typer.Option(help="Model file, or `shipped` for the one in the package.")
    ] = SHIPPED,
    hardware_name: Annotated[str | None, typer.Option(help="Only this hardware's data.")] = None,
    score: Annotated[
        str, typer.Option(help="Problems to score: auto, held-out (not trained on) or all.")
    ] = "auto",
    default_list: Annotated[
        bool, typer.Option(help="Compare with Inductor's default list (some seconds).")
    ] = True,
    overwrite: Overwrite = False,
) -> None:
    """Write an HTML page that shows how good a model is.

    Example: torch-diode report --dataset tutorial_validation.msgpack --model tutorial_model.pt
    """
    from torch_diode.cli.console.progress import ConsoleProgress
    from torch_diode.report import build

    with ConsoleProgress() as progress:
        result = build.report(
            dataset,
            output,
            model,
            hardware=hardware_name,
            score=score,
            default_list=default_list,
            overwrite=overwrite,
            progress=progress,
        )
    first = result.validation.evaluation.model["all"][0]
    print_line(f"{first.problems:,} problems, regret@1 {first.geomean:.4f}")
    for reason, count in result.validation.abstained.items():
        print_line(f"{count:,} more left out: {reason}")
    print_line(result.data["about"]["scored_how"])
    size = output.stat().st_size / 1e6
    print_line(f"{output}: {size:.1f} MB; open it in a browser")
