"""Paths that a command uses where none is given: their names have always been these."""

from __future__ import annotations

from pathlib import Path

import typer

from torch_diode.files.datasets import FORMS

DATASET = "matmul_dataset"
VALIDATION = "matmul_validation"
MODEL = Path("matmul_model.pt")


def new_dataset(context: typer.Context, given: Path | None, name: str = DATASET) -> Path:
    """The dataset to write: as given, or of this name in the form of `--format`."""
    return given or Path(f"{name}.{context.obj.form or FORMS[0]}")


def written_dataset(context: typer.Context, given: Path | None, name: str = DATASET) -> Path:
    """The dataset to read: as given, or of this name in the form of `--format`, without which any
    form will do."""
    forms = (context.obj.form,) if context.obj.form else FORMS
    paths = [Path(f"{name}.{form}") for form in forms]
    return given or next((path for path in paths if path.exists()), paths[0])
