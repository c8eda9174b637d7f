"""`torch-diode table`: build, merge, show and export lookup tables."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from torch_diode.cli.console.output import note, note_progress, print_json, print_line, print_table
from torch_diode.cli.options import filters
from torch_diode.cli.options.parameters import Overwrite
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

TableFile = Annotated[Path, typer.Argument(help="Table file (JSON or MessagePack).")]


@app.command()
def build(
    output: Annotated[Path, typer.Option("--output", "-o", help="Table file to write.")],
    dataset: Annotated[
        Path | None, typer.Option(help="Dataset file or directory of shards.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Model file, or shipped: its decisions, for --shapeset.")
    ] = None,
    shapeset: Annotated[Path | None, typer.Option(help="Problems for --model to decide.")] = None,
    k: Annotated[int, typer.Option(help="Candidates to keep per problem.", min=1)] = 1,
    ranges: Annotated[
        bool, typer.Option(help="Join problems of successive M that one candidate is best in.")
    ] = False,
    hardware: filters.Hardware = None,
    threads: filters.Threads = 0,
    operations: filters.Operations = None,
    overwrite: Overwrite = False,
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
        problems = [
            problem
            for problem in read_shapes(shapeset).problems
            if not operations or problem.op in operations
        ]
        table = build_table_from_model(model, problems, k, hardware, note_progress, threads=threads)
    else:
        raise InvalidValueError(
            "table build: expected --dataset, with or without --ranges, or --model with --shapeset"
        )
    write_table(table, output, overwrite)
    print_line(f"{output}: {len(table):,} rows for {', '.join(table.hardware)}")


@app.command()
def merge(
    tables: Annotated[list[Path], typer.Argument(help="Table files.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Table file to write.")],
    overwrite: Overwrite = False,
) -> None:
    """Merge tables. Of two rows for one problem the one measured later is kept, then the one with
    more repetitions, then the one of the table named first.

    Example: torch-diode table merge monday.json tuesday.json --output both.json
    """
    from torch_diode.toolkit.tables import merge_tables

    refuse_existing(output, overwrite)
    table = merge_tables(tables)
    write_table(table, output, overwrite)
    print_line(f"{output}: {len(table):,} rows for {', '.join(table.hardware)}")


@app.command()
def show(
    table: TableFile,
    problem: Annotated[
        str | None, typer.Option(help="One problem, such as mm:512x4096x4096:bfloat16:nt.")
    ] = None,
    limit: Annotated[int, typer.Option(help="Problems to list; 0 lists all.", min=0)] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
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
    table: TableFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write.")],
    inductor: Annotated[
        bool, typer.Option("--inductor", help="torch's own lookup_table form.")
    ] = False,
    overwrite: Overwrite = False,
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
