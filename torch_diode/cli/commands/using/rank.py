"""`torch-diode rank`: many problems at once, a line of JSON each."""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from torch_diode.cli.commands.data.convert import refuse_same
from torch_diode.cli.commands.using.predict import HardwareName, ModelFile
from torch_diode.files.atomic import STDOUT, descriptor, replacing
from torch_diode.files.file_errors import naming_file
from torch_diode.files.json import loads
from torch_diode.types.candidate import Candidate
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.errors import (
    DiodeError,
    EmptySelectionError,
    FileFaultError,
    InvalidValueError,
)
from torch_diode.types.problem import MMShape

if TYPE_CHECKING:
    from torch_diode.toolkit.predict import HeuristicWithFallback

_DIGITS = 4


def rank(
    context: typer.Context,
    input_file: Annotated[
        Path, typer.Option("--input", "-i", help="Problems, one JSON object a line.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Rankings, in the same order.")],
    hardware: HardwareName = None,
    model: ModelFile = None,
    top: Annotated[
        int, typer.Option(help="Candidates to write for a problem that names none.", min=1)
    ] = 10,
) -> None:
    """Rank the candidates of each problem in a file; a bad line stops it, and nothing is written.

    Example: torch-diode rank --input problems.jsonl --output ranked.jsonl --hardware nvidia-h200

    \b
    $ cat problems.jsonl
    {"op":"mm","M":512,"N":4096,"K":4096,"dtype":"bfloat16","transpose_b":true,
     "candidates":[{"template":"aten"},{"template":"triton::mm","block_m":64,"block_n":128,
     "block_k":64,"group_m":8,"num_stages":4,"num_warps":4}]}        (all on one line)
    $ cat ranked.jsonl
    {"order":[0,1],"predicted_us":[29.1857,34.2314]}
    """
    from torch_diode.toolkit.predict import chip_named, resolve_heuristic

    refuse_same(output, input_file)
    with naming_file(input_file), input_file.open("rb"):
        pass  # a wrong path shows before a model is loaded
    asked, note = resolve_heuristic(chip_named(hardware, context.obj.device), model)
    reasons: Counter[str] = Counter()
    count = 0
    with replacing(output) as temporary, temporary.open("w", encoding="utf-8") as written:
        for answer in _answers(input_file, asked, top, reasons):
            written.write(json.dumps(answer, separators=(",", ":")) + "\n")
            count += 1
        if not count:
            raise EmptySelectionError(f"{input_file}: got no problem; expected one a line")
    for text in [note, *(f"{number:,} problems {why}" for why, number in reasons.items())]:
        if text:
            sys.stderr.write(f"torch-diode: {text}\n")
    told = sys.stderr if descriptor(output) == STDOUT else sys.stdout
    told.write(f"{output}: {count:,} problems ranked\n")


def _answers(
    path: Path, asked: HeuristicWithFallback, top: int, reasons: Counter[str]
) -> Iterator[dict[str, Any]]:
    with naming_file(path), path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                answer, why = answer_for(loads(line), asked, top)
            except DiodeError as fault:
                raise FileFaultError(f"{path}: line {number}: {fault}") from None
            for reason in why:
                reasons[reason] += 1
            yield answer


def answer_for(
    data: Any, asked: HeuristicWithFallback, top: int
) -> tuple[dict[str, Any], list[str]]:
    """One line's answer, and what is to be said of it."""
    from torch_diode.candidates import candidate_space
    from torch_diode.candidates.gpu.eligibility import can_offer

    if not isinstance(data, dict):
        raise InvalidValueError(f"got {type(data).__name__}; expected an object")
    given = data.pop("candidates", None)
    problem = MMShape.from_dict(data)
    if given is None:
        space = candidate_space(problem, asked.chip)
        ranking, why = asked.rank(problem, space)
        best = ranking.predictions(space, top)
        ranked = [{**p.candidate.to_dict(), "predicted_us": _short(p.predicted_us)} for p in best]
        return {"ranked": ranked}, _notes(why)
    if not isinstance(given, list) or not given:
        raise InvalidValueError("candidates: got no list of any; expected one, or leave it out")
    candidates = Candidates.of(map(Candidate.from_dict, given))
    ranking, why = asked.rank(problem, candidates)
    times = [_short(time) for time in ranking.predicted_us.tolist()]
    strange = [n for n in candidates.templates if not can_offer(n, problem, asked.chip)]
    return {"order": ranking.order.tolist(), "predicted_us": times}, _notes(why, *strange)


def _notes(why: str, *strange: str) -> list[str]:
    notes = [f"by the analytical heuristic: {why}"] if why else []
    if strange:
        notes.append(f"with {', '.join(strange)}, which cannot run them: no time of that counts")
    return notes


def _short(time: float | None) -> float | None:
    """None where the heuristic only orders."""
    return None if time is None or math.isnan(time) else round(time, _DIGITS)
