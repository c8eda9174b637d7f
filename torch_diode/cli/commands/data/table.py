"""`torch-diode table`: build, show and export lookup tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from torch_diode.cli.console.output import note_progress, print_json, print_line, print_table
from torch_diode.cli.options import filters
from torch_diode.cli.options.parameters import Overwrite
from torch_diode.files.atomic import refuse_existing
from torch_diode.files.json import write_json
from torch_diode.files.tables import read_table, table_to, write_table
from torch_diode.files.torch_lookup_table import inductor_table
from torch_diode.toolkit.datasets import build_table
from torch_diode.types.errors import EmptySelectionError, InvalidValueError
from torch_diode.types.problem import MMShape
from torch_diode.types.table import Table

app = typer.Typer(
    help="""Lookup tables: build, inspect, export.

    Example: torch-diode table build --dataset timings.parquet --output table.json
    """,
    no_args_is_help=True,
    rich_markup_mode=None,
)

TableFile = Annotated[Path, typer.Argument(help="Table file (JSON).")]


@app.command()
def build(
    dataset: Annotated[Path, typer.Option(help="Dataset file or directory of shards.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Table file to write.")],
    k: Annotated[int, typer.Option(help="Candidates to keep per problem.", min=1)] = 1,
    hardware: filters.Hardware = None,
    operations: filters.Operations = None,
    overwrite: Overwrite = False,
) -> None:
    """Keep the fastest, or the k fastest, candidates of every problem of a dataset.

    Example: torch-diode table build --dataset timings.parquet --output table.json --k 3
    """
    refuse_existing(output, overwrite)
    table = build_table(dataset, k, hardware, operations or (), note_progress)
    write_table(table, output, overwrite)
    print_line(f"{output}: {len(table):,} problems on {', '.join(table.hardware)}")


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
        rows_of_problem = tuple(row for row in contents if row[1] == wanted)
        contents = Table(rows_of_problem, contents.provenance)
        if not len(contents):
            raise EmptySelectionError(f"{table}: got no row for {problem}; list what it has first")
    if as_json:
        print_json(table_to(contents))
        return
    rows = [
        (hardware, shape.key if first else "", str(entry.candidate), entry.time_us)
        for hardware, shape, entries in contents.rows[: limit or None]
        for first, entry in zip([True] + [False] * len(entries), entries, strict=False)
    ]
    print_table(("hardware", "problem", "candidate", "µs"), rows, right="lllr")
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
    entries = inductor_table(read_table(table))
    write_json(output, entries, 2, overwrite)
    print_line(f"{output}: {len(entries):,} keys; load it with json and set")
    print_line("torch._inductor.config.lookup_table.table to it (torch 2.10 and later)")
