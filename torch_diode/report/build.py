"""The report: one HTML file that shows how good a model is on a dataset."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch_diode.files.atomic import refuse_existing
from torch_diode.model.registry import SHIPPED
from torch_diode.report.contents import CURVE_KS, contents
from torch_diode.report.page import write_page
from torch_diode.toolkit.datasets import DatasetSource, refuse_same, source_name
from torch_diode.toolkit.progress import ProgressCallback, log_progress
from torch_diode.toolkit.validate import Validation, validate
from torch_diode.types.dataset import Dataset
from torch_diode.types.errors import FileFaultError


@dataclass(frozen=True, eq=False)
class Report:
    """A written report and the validation it shows."""

    path: Path
    validation: Validation
    data: dict[str, Any]
    """Everything on the page, as plain data."""


def report(
    dataset: DatasetSource,
    output: Path = Path("report.html"),
    model: str | os.PathLike[str] = SHIPPED,
    *,
    hardware: str | None = None,
    score: str = "auto",
    default_list: bool = True,
    overwrite: bool = False,
    progress: ProgressCallback = log_progress,
) -> Report:
    """Validate a model on a dataset and write a page of the results.

    The arguments are those of `validate`; `default_list` compares with Inductor's default list,
    which takes some seconds. The page loads nothing and can be sent as it is.
    """
    if output.is_dir():
        raise FileFaultError(f"{output}: got a directory; expected the name of an HTML file")
    if not isinstance(dataset, Dataset):
        refuse_same(output, Path(dataset), Path(model))
    refuse_existing(output, overwrite)
    validation = validate(
        model,
        dataset,
        hardware=hardware,
        score=score,
        ks=CURVE_KS,
        default_list=default_list,
        progress=progress,
    )
    model_name = SHIPPED if os.fspath(model) == SHIPPED else validation.model.name
    data = contents(validation, _shown_name(dataset), model_name)
    write_page(output, data, overwrite)
    return Report(output, validation, data)


def _shown_name(dataset: DatasetSource) -> str:
    if isinstance(dataset, Dataset):
        return source_name(dataset)
    path = Path(dataset)
    return path.resolve().name + ("/" if path.is_dir() else "")
