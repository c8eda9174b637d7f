"""`torch-diode create-validation`: a separate set, never sharing a problem with training."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import typer

from torch_diode.cli.commands.collecting.collect_shapeset import shapeset_problems
from torch_diode.cli.console.output import print_line
from torch_diode.cli.options.collecting import How, Shapes
from torch_diode.cli.options.groups import expand_options
from torch_diode.collection.shape_sampling import Sizes, sizes_of
from torch_diode.files.datasets import read_dataset, shards
from torch_diode.files.file_errors import naming_file
from torch_diode.toolkit.datasets import may_be_dataset, read_all
from torch_diode.types.dataset import Dataset
from torch_diode.types.errors import DiodeError, EmptySelectionError, FileFaultError
from torch_diode.types.problem import MMShape

COMMAND = "create-validation"
_SIZES = ["op", "B", "M", "N", "K"]
_MOST = 1000
"""Folders and files that are looked into for training data nobody has named."""


@expand_options
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
            "working directory, beside the output and beside its folder, and in folders there."
        ),
    ] = None,
) -> None:
    """Collect a validation set: drawn shapes, or a shape set's, that no training data has.

    It says what it compared with. No seed draws the shapes that `collect` draws with it.

    Example: torch-diode --seed 43 create-validation --output validation.parquet --num-shapes 50
    """
    if shapeset is None:
        validation_drawn(context, how, shapes, exclude)
        return
    given = shapeset_problems(shapeset, shapes.operations or [], shapes.dtypes or [])
    shapes.drawing(context.obj.device)  # what is wrong with its options shows
    from torch_diode.toolkit import collect

    with collect.Collecting.of(COMMAND, context, how) as run:
        run.run(unshared(given, taken_sizes(exclude, run.file)), {})


def validation_drawn(
    context: typer.Context,
    how: How,
    shapes: Shapes,
    exclude: Sequence[Path] | None,
    *,
    going_on: bool = False,
) -> None:
    """Collect drawn shapes; with `going_on` an output that is finished will do."""
    wanted = shapes.drawing(context.obj.device)
    from torch_diode.toolkit import collect

    with collect.Collecting.of(COMMAND, context, how, going_on) as run:
        taken = taken_sizes(exclude, run.file)
        # A stream of its own: with the seed of training it would draw the same problems.
        drawn = wanted.problems(run.hardware, f"validation {run.seed}", taken)
        run.run(drawn, wanted.options())


def taken_sizes(exclude: Sequence[Path] | None, output: Path) -> set[Sizes]:
    """The sizes that validation may not have: of the datasets named, or of the neighbours."""
    taken: set[Sizes] = set()
    if exclude:
        for path in exclude:
            taken |= _compared(path, read_all(path))
        return taken
    compared = False
    for path in neighbours(output):
        try:
            dataset = read_dataset(path)
        except DiodeError as fault:
            print_line(f"not compared with {_shown(path)}: {fault}")
            continue
        taken |= _compared(path, dataset)
        compared = True
    if not compared:
        print_line(
            "compared with nothing: no other dataset was found; name training data with --exclude"
        )
    return taken


def _compared(path: Path, dataset: Dataset) -> set[Sizes]:
    """A dataset's sizes; what was compared with is told."""
    count = len(dataset.problems)
    print_line(f"compared with {count:,} problems of {_shown(path)}: none of their sizes is taken")
    return sizes_in(dataset)


def _shown(path: Path) -> Path:
    """As it is named from here."""
    here = _here()
    return path.relative_to(here) if path.is_relative_to(here) else path


def _here() -> Path:
    with naming_file("the working directory"):
        return Path.cwd()


def neighbours(output: Path) -> list[Path]:
    """The dataset files where training data may lie, damaged ones too. A model's card or a shape
    set is none."""
    own = output.resolve()
    folders = _folders(own)
    files = [file for folder in folders[:_MOST] for file in _data_files(folder) if file != own]
    for what, found in (("folders", folders), ("files", files)):
        if len(found) > _MOST:
            more = len(found) - _MOST
            print_line(f"not looked into: {more:,} more {what}; name training data with --exclude")
    return [file for file in files[:_MOST] if may_be_dataset(file)]


def _folders(output: Path) -> list[Path]:
    """Beside the output, in the working directory, and beside the folder the output is in, if that
    is another; and the folders in each, which a dataset may be, or what an interrupted collection
    has so far. No deeper: who knows what else is there."""
    here, beside = _here(), output.parent
    roots = (beside, here) if beside == here else (beside, here, beside.parent)
    found: dict[Path, None] = {}
    for root in roots:
        found.update(dict.fromkeys([root, *_inside(root)]))
    parts = output.with_name(f"{output.name}.parts")
    return [folder for folder in found if folder not in (output, parts)]


def _inside(folder: Path) -> list[Path]:
    """The folders in a folder; none where it cannot be looked into, which is told of later."""
    try:
        return sorted(
            path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")
        )
    except OSError:
        return []


def _data_files(folder: Path) -> list[Path]:
    """None in most; of a folder that cannot be looked into itself, since reading it says why."""
    try:
        return shards(folder) if folder.is_dir() else []
    except EmptySelectionError:
        return []
    except FileFaultError:
        return [folder]


def sizes_in(dataset: Dataset) -> set[Sizes]:
    """The sizes a dataset has, each once."""
    columns = dataset.table.select(_SIZES)
    columns = columns.set_column(0, "op", columns.column("op").cast(pa.string()))
    rows = columns.group_by(_SIZES).aggregate([]).to_pylist()
    return {(row["op"], row["B"], row["M"], row["N"], row["K"]) for row in rows}


def unshared(problems: Iterable[MMShape], taken: set[Sizes]) -> list[MMShape]:
    """Those whose size is not taken; never none."""
    everything = list(problems)
    found = [problem for problem in everything if sizes_of(problem) not in taken]
    if not found:
        raise EmptySelectionError(
            f"validation: got {len(everything)} problems, all of them in training data; expected "
            "some that are not; choose another shape set or name what to --exclude"
        )
    if len(found) < len(everything):
        print_line(f"{len(everything) - len(found):,} problems left out: training data has them")
    return found
