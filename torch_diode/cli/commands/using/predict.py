"""`torch-diode predict`: what would run, and how fast; needs no GPU."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from torch_diode.cli.console.output import print_json, print_line, print_table
from torch_diode.types import validation
from torch_diode.types.candidate import ATEN, Candidate
from torch_diode.types.problem import LAYOUTS, MMShape

if TYPE_CHECKING:
    from torch_diode.toolkit.predict import HeuristicWithFallback

HardwareName = Annotated[
    str | None, typer.Option(help="Chip to answer for; it need not be here. This machine's if not.")
]
ModelFile = Annotated[
    str | None, typer.Option(help="Model file to ask; the one for the hardware if not.")
]


def predict(
    context: typer.Context,
    m: Annotated[int, typer.Option("--m", help="Rows of A.")],
    n: Annotated[int, typer.Option("--n", help="Columns of B.")],
    k: Annotated[int, typer.Option("--k", help="Columns of A.")],
    op: Annotated[str, typer.Option(help="mm, addmm, bmm or baddbmm.")] = "mm",
    b: Annotated[int, typer.Option("--b", help="Batch, for bmm and baddbmm.")] = 1,
    dtype: Annotated[str, typer.Option(help="bfloat16, float16 or float32.")] = "bfloat16",
    layout: Annotated[
        str, typer.Option(help="nn, nt, tn or tt: t for an operand that lies transposed.")
    ] = "nn",
    tf32: Annotated[bool, typer.Option("--tf32", help="float32 products in TF32.")] = False,
    bias: Annotated[str, typer.Option(help="vector or matrix, for addmm and baddbmm.")] = "",
    hardware: HardwareName = None,
    model: ModelFile = None,
    top: Annotated[int, typer.Option(help="Candidates to show.", min=1)] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Show the best candidates of a problem with their predicted times.

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
    from torch_diode.candidates import candidate_space
    from torch_diode.toolkit.predict import chip_named, resolve_heuristic

    chip = chip_named(hardware, context.obj.device)
    asked, note = resolve_heuristic(chip, model)
    space = candidate_space(problem, chip)
    ranking, why = asked.rank(problem, space)
    found = ranking.predictions(space, top)
    times = ranking.predicted_us[space.is_template(ATEN)]
    aten = float(times[0]) if len(times) and not math.isnan(times[0]) else None
    notes = [text for text in (note, why and f"{why}; the analytical heuristic answers") if text]
    left_to_torch = bool(notes)  # each says why a compile would not ask who answered here
    runs = Candidate(ATEN) if left_to_torch else plain_choice(asked, problem)
    if as_json:
        print_json(
            {
                "problem": problem.to_dict(),
                "hardware": chip.name,
                "candidates": len(space),
                "source": ranking.source,
                "aten_us": aten,
                "notes": notes,
                "left_to_torch": left_to_torch,
                "plain_compile": runs.to_dict(),
                "ranked": [
                    {**p.candidate.to_dict(), "predicted_us": p.predicted_us, "sigma": p.sigma}
                    for p in found
                ],
            }
        )
        return
    print_line(f"{problem} on {chip.name}, {len(space):,} candidates, by {ranking.source}")
    rows: list[tuple[Any, ...]] = []
    for place, p in enumerate(found, 1):
        error = "-" if p.sigma is None else f"{p.sigma:.0%}"
        took = p.predicted_us
        rate = "-" if took is None else f"{problem.flops / took / 1e6:,.1f}"
        ratio = "-" if took is None or aten is None else f"{took / aten:.2f}x"
        rows.append((place, str(p.candidate), "-" if took is None else took, error, rate, ratio))
    names = ("", "candidate", "µs", "±", "TFLOP/s", "of ATen")
    print_table(names, rows, right="rlrrrr")
    for text in notes:
        print_line(f"Note: {text}.")
    does = "leaves it to torch, which runs" if left_to_torch else "runs"
    print_line(f"A plain torch.compile {does} {runs}.")


def plain_choice(asked: HeuristicWithFallback, problem: MMShape) -> Candidate:
    """What a plain compile runs; ATen where the first one asked leaves it to torch."""
    from torch_diode.integration.deciding.plain_choice import plain_ranking, runs_alone

    found = plain_ranking(problem, asked.first, asked.chip)
    return Candidate(ATEN) if found is None else runs_alone(*found)
