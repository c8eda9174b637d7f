"""`torch-diode table`: build, merge, show and export lookup tables."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import typer

from torch_diode.cli.console.output import note, note_progress, print_json, print_line, print_table
from torch_diode.cli.options import filters
from torch_diode.cli.options.parameters import (
    AS_JSON,
    LIMIT,
    OUTPUT,
    OVERWRITE,
    flag,
    option,
    required,
)
from torch_diode.files.atomic import refuse_existing
from torch_diode.files.json import write_json
from torch_diode.files.shape_sets import read_shapes
from torch_diode.files.tables import read_table, table_to, write_table
from torch_diode.files.torch_lookup_table import inductor_table
from torch_diode.types.errors import EmptySelectionError, InvalidValueError
from torch_diode.types.problem import MMShape
from torch_diode.types.table import Table

app = typer.Typer(
    help="""Lookup tables: build, merge, inspect, export.

    Example: torch-diode table build --dataset timings.parquet --output table.json
    """,
    no_args_is_help=True,
    rich_markup_mode=None,
)

TABLE_FILE: Any = typer.Argument(..., help="Table file (JSON or MessagePack).")
TABLE_OUTPUT = required("Table file to write.", "--output", "-o")


@app.command()
def build(
    output: Path = TABLE_OUTPUT,
    dataset: Path | None = option("Dataset file or directory of shards."),
    model: str | None = option("Model file, or shipped: its decisions, for --shapeset."),
    shapeset: Path | None = option("Problems for --model to decide."),
    k: int = option("Candidates to keep per problem.", default=1, min=1),
    ranges: bool = flag("Join problems of successive M that one candidate is best in."),
    hardware: str | None = filters.HARDWARE,
    threads: int = filters.THREADS,
    operations: list[str] | None = filters.OPERATIONS,
    overwrite: bool = OVERWRITE,
) -> None:
    """Keep the fastest, or the k fastest, candidates of every problem of a dataset; or what a model
    decides for every problem of a shape set.

    Example: torch-diode table build --dataset timings.parquet --output table.json --k 3

    Example: torch-diode table build --model shipped --hardware nvidia-h200 --shapeset shapes.json
    --output table.json
    """
    from torch_diode.toolkit.tables import build_table, build_table_from_model

    refuse_existing(output, overwrite)
    if dataset is not None and model is None and shapeset is None:
        table = build_table(
            dataset, k, hardware, operations or (), note_progress, threads=threads, ranges=ranges
        )
    elif dataset is None and model is not None and shapeset is not None and not ranges:
        shapes = read_shapes(shapeset).problems
        problems = [p for p in shapes if not operations or p.op in operations]
        table = build_table_from_model(model, problems, k, hardware, note_progress, threads=threads)
    else:
        raise InvalidValueError(
            "table build: expected --dataset, with or without --ranges, or --model with --shapeset"
        )
    _write(table, output, overwrite)


@app.command()
def merge(
    tables: list[Path] = typer.Argument(..., help="Table files."),
    output: Path = TABLE_OUTPUT,
    overwrite: bool = OVERWRITE,
) -> None:
    """Merge tables. Of two rows for one problem the one measured later is kept, then the one with
    more repetitions, then the one of the table named first.

    Example: torch-diode table merge monday.json tuesday.json --output both.json
    """
    from torch_diode.toolkit.tables import merge_tables

    refuse_existing(output, overwrite)
    table = merge_tables(tables)
    _write(table, output, overwrite)


def _write(table: Table, output: Path, overwrite: bool) -> None:
    write_table(table, output, overwrite)
    print_line(f"{output}: {len(table):,} rows for {', '.join(table.hardware)}")


@app.command()
def show(
    table: Path = TABLE_FILE,
    problem: str | None = option("One problem, such as mm:512x4096x4096:bfloat16:nt."),
    limit: int = LIMIT,
    as_json: bool = AS_JSON,
) -> None:
    """List a table's problems and candidates, or one problem's.

    Example: torch-diode table show table.json --problem mm:512x4096x4096:bfloat16:nt
    """
    contents = read_table(table)
    if problem is not None:
        wanted = MMShape.from_key(problem)
        found = [(name, contents.find(name, wanted)) for name in contents.hardware]
        rows_of_problem = tuple((name, m.problem, m.entries) for name, m in found if m is not None)
        contents = Table(rows_of_problem, contents.provenance)
        if not len(contents):
            raise EmptySelectionError(f"{table}: got no row for {problem}; list what it has first")
    if as_json:
        print_json(table_to(contents))
        return
    rows = [
        (
            hardware,
            shape.key if first else "",
            "-".join(map(str, entry.M or ())),
            str(entry.candidate),
            entry.time_us,
        )
        for hardware, shape, entries in islice(contents, limit or None)
        for first, entry in zip([True] + [False] * len(entries), entries, strict=False)
    ]
    print_table(("hardware", "problem", "M", "candidate", "µs"), rows, right="llllr")
    if limit and len(contents) > limit:
        print_line(f"… and {len(contents) - limit:,} more problems (--limit 0 lists all)")


@app.command()
def export(
    table: Path = TABLE_FILE,
    output: Path = OUTPUT,
    inductor: bool = flag("torch's own lookup_table form.", "--inductor"),
    overwrite: bool = OVERWRITE,
) -> None:
    """Write a table in torch's own form, for machines without torch-diode.

    Example: torch-diode table export table.json --inductor --output inductor_table.json
    """
    if not inductor:
        raise InvalidValueError("export: got no form to export to; expected --inductor")
    refuse_existing(output, overwrite)
    contents = read_table(table)
    entries = inductor_table(contents)
    if not entries:
        raise EmptySelectionError(
            f"{table}: got no row for a GPU; expected some, torch's form has no CPUs"
        )
    write_json(output, entries, 2, overwrite)
    ranged = list(contents.rows_with_range())
    if ranged:
        note(
            f"{len(ranged):,} rows hold for a range of M, of which torch's form has none: each was "
            "written for its own M alone"
        )
    print_line(f"{output}: {len(entries):,} keys; load it with json and set")
    print_line("torch._inductor.config.lookup_table.table to it (torch 2.10 and later)")
