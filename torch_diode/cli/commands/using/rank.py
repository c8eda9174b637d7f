"""`torch-diode rank`: rank a file of problems, one line of JSON each."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from torch_diode.cli.commands.using.predict import MODEL_FILE
from torch_diode.cli.console.output import note_progress
from torch_diode.cli.options import filters
from torch_diode.cli.options.parameters import OVERWRITE, option, required
from torch_diode.files.atomic import STDOUT, descriptor


def rank(
    context: typer.Context,
    input_file: Path = required("Problems, one JSON object a line.", "--input", "-i"),
    output: Path = required("Rankings, in the same order.", "--output", "-o"),
    hardware: str | None = filters.CHIP,
    threads: int = filters.THREADS,
    model: str | None = MODEL_FILE,
    top: int = option("Candidates to write for a problem that names none.", default=10, min=1),
    overwrite: bool = OVERWRITE,
) -> None:
    """Rank the candidates of every problem in a file.

    A bad line stops it, and nothing is written.

    Example: torch-diode rank --input problems.jsonl --output ranked.jsonl --hardware nvidia-h200

    \b
    $ cat problems.jsonl
    {"op":"mm","M":512,"N":4096,"K":4096,"dtype":"bfloat16","transpose_b":true,
     "candidates":[{"template":"aten"},{"template":"triton::mm","block_m":64,"block_n":128,
     "block_k":64,"group_m":8,"num_stages":4,"num_warps":4}]}        (all on one line)
    $ cat ranked.jsonl
    {"order":[0,1],"predicted_us":[29.1857,34.2314]}
    """
    from torch_diode.toolkit.predict import rank_file

    device, progress = context.obj.device, note_progress
    count = rank_file(
        input_file, output, hardware, model, top, device, progress, threads, overwrite
    )
    stream = sys.stderr if descriptor(output) == STDOUT else sys.stdout
    stream.write(f"{output}: {count:,} problems ranked\n")
