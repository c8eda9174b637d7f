"""`torch-diode report`: write an HTML report on a model and a dataset."""

from __future__ import annotations

from pathlib import Path

from torch_diode.cli.console.output import megabytes, print_line
from torch_diode.cli.options.parameters import OVERWRITE, SHIPPED_MODEL, option, required


def report(
    dataset: Path = required("Dataset file or directory of shards."),
    output: Path = option("HTML file to write.", "--output", "-o", default=Path("report.html")),
    model: str = SHIPPED_MODEL,
    hardware_name: str | None = option("Only this hardware's data."),
    score: str = option(
        "Problems to score: auto, held-out (not trained on) or all.", default="auto"
    ),
    default_list: bool = option(
        "Compare with Inductor's default list (some seconds).", default=True
    ),
    overwrite: bool = OVERWRITE,
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
