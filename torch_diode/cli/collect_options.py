"""The options of the collecting commands, in words; light, since `--help` loads them.

What the words come to is in `drawing` (which shapes) and `collecting` (how they are timed).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from torch_diode.collection.shape_sources import LogNormal

LAW = LogNormal()

Output = Annotated[
    Path,
    typer.Option("--output", "-o", help="File to write (.parquet, .msgpack, .json) or directory."),
]
SearchSpace = Annotated[str, typer.Option(help="Candidates to time: EXHAUSTIVE or DEFAULT.")]
SearchMode = Annotated[str, typer.Option(help="What torch is compared in; max-autotune.")]
Method = Annotated[
    str, typer.Option(help="sweep: our clean timer, in bulk; feedback: Inductor's autotuning.")
]
ChunkSize = Annotated[
    int | None, typer.Option(help="Problems that wait for kernels together.", min=1)
]
Processes = Annotated[
    int, typer.Option(help="Compiling processes; 0 for all cores but two.", min=0)
]
Overwrite = Annotated[bool, typer.Option(help="Replace the output if it exists.")]
Operations = Annotated[list[str] | None, typer.Option(help="mm, addmm, bmm, baddbmm.")]
Dtypes = Annotated[
    list[str] | None, typer.Option(help="bfloat16 (default on a GPU), float16, float32.")
]
NumShapes = Annotated[int, typer.Option(help="Problems to draw.", min=1)]
IsLogNormal = Annotated[
    bool, typer.Option("--log-normal", help="Sizes by the log-normal law of real workloads.")
]
MMean = Annotated[float, typer.Option(help="Mean of ln M.")]
MStd = Annotated[float, typer.Option(help="Deviation of ln M.", min=0)]
NMean = Annotated[float, typer.Option(help="Mean of ln N.")]
NStd = Annotated[float, typer.Option(help="Deviation of ln N.", min=0)]
KMean = Annotated[float, typer.Option(help="Mean of ln K.")]
KStd = Annotated[float, typer.Option(help="Deviation of ln K.", min=0)]
MinSize = Annotated[int | None, typer.Option(help="Least M, N and K.")]
MaxSize = Annotated[int | None, typer.Option(help="Greatest M, N and K.")]
PowerOfTwo = Annotated[bool, typer.Option("--power-of-two", help="Powers of two only.")]
NoRectangular = Annotated[bool, typer.Option("--no-rectangular", help="M = N = K.")]
NoOddSizes = Annotated[bool, typer.Option("--no-odd-sizes", help="Even sizes only.")]
Layouts = Annotated[
    list[str] | None, typer.Option("--layout", help="nn, nt, tn or tt; may be given again.")
]
Tf32 = Annotated[bool, typer.Option("--tf32", help="float32 products in TF32.")]
