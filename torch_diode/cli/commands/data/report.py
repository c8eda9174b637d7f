"""`torch-diode report`: one HTML file that shows how good a model is on a dataset."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from torch_diode.cli.commands.data.convert import refuse_same
from torch_diode.cli.console.output import print_line
from torch_diode.model.shipped import SHIPPED, model_file
from torch_diode.toolkit.timings import chip_of, read_timings
from torch_diode.types import validation
from torch_diode.types.errors import FileFaultError, MissingPartError

if TYPE_CHECKING:
    from torch_diode.report.predictions import Flags, Ids, LoadedModel
    from torch_diode.report.regret import InList
    from torch_diode.types.dataset import Dataset
    from torch_diode.types.hardware import Hardware


def report(
    dataset: Annotated[Path, typer.Option(help="Dataset file or directory of shards.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="HTML file to write.")] = Path(
        "report.html"
    ),
    model: Annotated[
        str, typer.Option(help="Model file, or `shipped` for the one that comes along.")
    ] = SHIPPED,
    hardware_name: Annotated[str | None, typer.Option(help="Only this hardware's data.")] = None,
    score: Annotated[
        str, typer.Option(help="Problems to score: auto, held-out (not trained on) or all.")
    ] = "auto",
    default_list: Annotated[
        bool, typer.Option(help="Compare with Inductor's default list (some seconds).")
    ] = True,
) -> None:
    """Write a report: regret, predicted against measured, worst decisions, where which kernel wins.

    Example: torch-diode report --dataset tutorial_validation.msgpack --model tutorial_model.pt
    """
    from torch_diode.model.evaluation.holdout import SCORED
    from torch_diode.report.build import report_data
    from torch_diode.report.page import write_page

    validation.one_of("report", "score", score, SCORED)
    if output.is_dir():
        raise FileFaultError(f"{output}: got a directory; expected the name of an HTML file")
    refuse_same(output, dataset, Path(model))
    chosen = read_timings(dataset, None, hardware_name, ())
    hardware = chip_of(chosen)
    name, found = _model(model, hardware)
    folder = "/" if dataset.is_dir() else ""
    names = (dataset.resolve().name + folder, name)
    asked = _in_list(chosen, hardware) if default_list else None
    print_line(f"Scoring {len(chosen):,} timings …")
    data = report_data(chosen, found, hardware, names, score, asked)
    write_page(output, data)
    size = output.stat().st_size / 1e6
    first = data["curves"]["model"][0]
    print_line(f"{first['problems']:,} problems, regret@1 {first['geomean']:.4f}")
    for gap in data["about"]["abstained"]:
        print_line(f"{gap['problems']:,} more left out: {gap['reason']}")
    print_line(data["about"]["scored_how"])
    print_line(f"{output}: {size:.1f} MB; open it in a browser")


def _in_list(dataset: Dataset, hardware: Hardware) -> InList:
    """Which rows are of Inductor's default lists, asked for when it is needed: that imports the
    compiler, which no fault of the user's should have to wait for."""

    def asked(rows: Ids) -> tuple[Flags, float]:
        if hardware.kind != "cuda":
            raise MissingPartError(f"Inductor's list is read for NVIDIA chips, not {hardware.name}")
        from torch_diode.integration.capture.default_lists import listed_rows

        found = listed_rows(dataset, rows, hardware)
        return found.rows, found.coverage

    return asked


def _model(given: str, hardware: Hardware) -> tuple[str, LoadedModel]:
    from torch_diode.report.predictions import LoadedModel

    path = model_file(given, hardware)
    return given if given == SHIPPED else path.name, LoadedModel.load(path)
