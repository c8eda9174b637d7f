"""`torch-diode predict`: the kernel a compile would run, and its time; needs no GPU."""

from __future__ import annotations

from typing import Any

import typer

from torch_diode.cli.console.output import print_json, print_line, print_notes, print_table
from torch_diode.cli.options import filters
from torch_diode.cli.options.parameters import AS_JSON, flag, option, required
from torch_diode.types import validation
from torch_diode.types.problem import LAYOUTS, MMShape

MODEL_FILE = option("Model file; by default the one for the hardware.")


def predict(
    context: typer.Context,
    m: int = required("Rows of A.", "--m"),
    n: int = required("Columns of B.", "--n"),
    k: int = required("Columns of A.", "--k"),
    op: str = filters.OP,
    b: int = option("Batch, for bmm and baddbmm.", "--b", default=1),
    dtype: str = filters.DTYPE,
    layout: str = filters.LAYOUT,
    tf32: bool = flag("float32 products in TF32.", "--tf32"),
    bias: str = option("vector or matrix, for addmm and baddbmm.", default=""),
    hardware: str | None = filters.CHIP,
    threads: int = filters.THREADS,
    model: str | None = MODEL_FILE,
    top: int = option("Candidates to show.", default=5, min=1),
    as_json: bool = AS_JSON,
) -> None:
    """Show the best kernels of a matmul and their predicted times.

    Example: torch-diode predict --m 512 --n 4096 --k 4096 --layout nt --hardware nvidia-h200

    \b
    mm:512x4096x4096:bfloat16:nt on nvidia-h200, 2,106 candidates, by model nvidia-h200
        candidate                           µs    ±   TFLOP/s   of ATen
    1   aten                             29.19   4%     588.6     1.00x
    2   triton::mm 128x128x64 g8 s5 w4   30.81   2%     557.7     1.06x
    ...
    A plain torch.compile runs aten.
    """
    validation.one_of("predict", "layout", layout, LAYOUTS)
    problem = MMShape(
        op, m, n, k, B=b, dtype=dtype, tf32=tf32, bias=bias,
        transpose_a=layout[0] == "t", transpose_b=layout[1] == "t",
    )  # fmt: skip
    from torch_diode.heuristics.policy import FIXED_SIZES_US
    from torch_diode.toolkit import predict as api

    result = api.predict(problem, hardware, model, top, context.obj.device, threads)
    if as_json:
        print_json(result.to_dict())
        return
    chip = result.hardware.label
    print_line(f"{problem} on {chip}, {result.candidates:,} candidates, by {result.source}")
    rows: list[tuple[Any, ...]] = []
    for place, p in enumerate(result.ranked, 1):
        error = "-" if p.sigma is None else f"{p.sigma:.0%}"
        took, aten = p.predicted_us, result.aten_us
        rate = "-" if took is None else f"{problem.flops / took / 1e6:,.1f}"
        ratio = "-" if took is None or aten is None else f"{took / aten:.2f}x"
        rows.append((place, str(p.candidate), "-" if took is None else took, error, rate, ratio))
    names = ("", "candidate", "µs", "±", "TFLOP/s", "of ATen")
    print_table(names, rows, right="rlrrrr")
    print_notes(result.notes)
    verb = "leaves it to torch, which runs" if result.left_to_torch else "runs"
    if result.shortlists:
        print_line(f"It shortlists for max-autotune: {result.shortlists}.")
    if result.open_sizes:
        print_line(
            f"With static shapes it counts up to {FIXED_SIZES_US} µs less for a Triton kernel, "
            "whose sizes are then compiled in; `explain` shows that time."
        )
    print_line(f"A plain torch.compile {verb} {result.plain_compile}.")
