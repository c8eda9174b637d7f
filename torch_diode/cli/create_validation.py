"""`torch-diode create-validation`: a separate set, never sharing a problem with training."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import typer

from torch_diode.cli.collect_options import How, Shapes
from torch_diode.cli.collect_shapeset import shapeset_problems
from torch_diode.cli.drawing import Size, size_of
from torch_diode.cli.option_groups import spread
from torch_diode.cli.output import say
from torch_diode.cli.timings import is_dataset
from torch_diode.files.datasets import read_dataset, shards
from torch_diode.files.faults import naming
from torch_diode.types.dataset import Dataset
from torch_diode.types.errors import DiodeError, EmptySelectionError, FileFaultError
from torch_diode.types.problem import MMShape

_SIZES = ["op", "B", "M", "N", "K"]


@spread
def create_validation(
    context: typer.Context,
    how: How,
    shapes: Shapes,
    shapeset: Annotated[
        Path | None, typer.Option(help="Shape set (JSON) to take problems from.")
    ] = None,
    exclude: Annotated[
        list[Path] | None,
        typer.Option(
            help="Dataset to share no problem with, may be given again; without it, all in the "
            "output's directory and the folders in it."
        ),
    ] = None,
) -> None:
    """Collect a validation set: drawn shapes, or a shape set's, that no training data has.

    Example: torch-diode --seed 43 create-validation --output validation.parquet --num-shapes 50
    """
    given = None
    if shapeset is not None:
        given = shapeset_problems(shapeset, shapes.operations or [], shapes.dtypes or [])
    wanted = shapes.drawing(context.obj.device)
    from torch_diode.cli import collecting

    with collecting.Collecting.of("create-validation", context, how) as run:
        taken = taken_sizes(exclude, run.file)
        if given is not None:
            run.run(unshared(given, taken), {})
        else:
            run.run(wanted.problems(run.hardware, run.seed, taken), wanted.options())


def taken_sizes(exclude: Sequence[Path] | None, output: Path) -> set[Size]:
    """The sizes that validation may not have: of the datasets named, or of the neighbours."""
    if exclude:
        return {size for path in exclude for size in sizes_in(read_dataset(path))}
    taken: set[Size] = set()
    for path in neighbours(output):
        try:
            sizes = sizes_in(read_dataset(path))
        except DiodeError as fault:
            say(f"not compared with {path.name}: {fault}")
            continue
        say(f"shares nothing with {path.name}: {len(sizes):,} sizes passed over")
        taken |= sizes
    return taken


def neighbours(output: Path) -> list[Path]:
    """The dataset files beside the output and in folders beside it, which a dataset may be, or what
    an interrupted collection has so far; damaged ones too. A model's card or a shape set is none.
    """
    with naming(output.parent):
        if not output.parent.is_dir():
            return []
        beside = sorted(output.parent.iterdir())
    folders = [path for path in beside if path.is_dir() and not path.name.startswith(".")]
    own = (output.name, f"{output.name}.parts")
    found: list[Path] = []
    for folder in (output.parent, *(path for path in folders if path.name not in own)):
        found += [path for path in _data_files(folder) if path.name != output.name]
    return [path for path in found if path.suffix.lower() != ".json" or is_dataset(path)]


def _data_files(folder: Path) -> list[Path]:
    """None in most; of a folder that cannot be looked into itself, since reading it says why."""
    try:
        return shards(folder)
    except EmptySelectionError:
        return []
    except FileFaultError:
        return [folder]


def sizes_in(dataset: Dataset) -> set[Size]:
    """The sizes a dataset has, each once."""
    columns = dataset.table.select(_SIZES)
    columns = columns.set_column(0, "op", columns.column("op").cast(pa.string()))
    rows = columns.group_by(_SIZES).aggregate([]).to_pylist()
    return {(row["op"], row["B"], row["M"], row["N"], row["K"]) for row in rows}


def unshared(problems: Iterable[MMShape], taken: set[Size]) -> list[MMShape]:
    """Those whose size is not taken; never none."""
    everything = list(problems)
    found = [problem for problem in everything if size_of(problem) not in taken]
    if not found:
        raise EmptySelectionError(
            f"validation: got {len(everything)} problems, all of them in training data; expected "
            "some that are not; choose another shape set or name what to --exclude"
        )
    if len(found) < len(everything):
        say(f"{len(everything) - len(found):,} problems left out: training data has them")
    return found
