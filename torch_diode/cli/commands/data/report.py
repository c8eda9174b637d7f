"""`torch-diode report`: write an HTML report on a model and a dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from torch_diode.cli.console.output import megabytes, print_line
from torch_diode.cli.options.parameters import Overwrite, ShippedModel, option
from torch_diode.model.registry import SHIPPED


def report(
    dataset: Annotated[Path, option("Dataset file or directory of shards.")],
    output: Annotated[Path, option("HTML file to write.", "--output", "-o")] = Path("report.html"),
    model: ShippedModel = SHIPPED,
    hardware_name: Annotated[str | None, option("Only this hardware's data.")] = None,
    score: Annotated[
        str, option("Problems to score: auto, held-out (not trained on) or all.")
    ] = "auto",
    default_list: Annotated[
        bool, option("Compare with Inductor's default list (some seconds).")
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
    print_line(f"{output}: {megabytes(output)}; open it in a browser")
