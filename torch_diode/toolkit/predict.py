"""Prediction without a compile: rank one problem's candidates, or those of a file of problems."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch_diode.candidates import candidate_space
from torch_diode.candidates.gpu.eligibility import can_offer
from torch_diode.files.atomic import refuse_existing, replacing
from torch_diode.files.file_errors import naming_file, refuse_device
from torch_diode.files.json import loads
from torch_diode.hardware import detect, find, with_threads
from torch_diode.heuristics import AnalyticalHeuristic
from torch_diode.heuristics.base import Heuristic
from torch_diode.heuristics.model import ModelHeuristic
from torch_diode.integration import default_heuristic, settings
from torch_diode.integration.rank import plain_ranking, single_choice
from torch_diode.integration.tuned_tables import tuned_folder
from torch_diode.model.registry import resolve_model
from torch_diode.toolkit.datasets import refuse_same
from torch_diode.toolkit.progress import Progress, ProgressCallback, log_progress
from torch_diode.types.candidate import ATEN, CPP_GEMM, LIBRARIES, Candidate
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.errors import (
    DiodeError,
    EmptySelectionError,
    FileFaultError,
    InvalidValueError,
)
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape
from torch_diode.types.ranking import Ranking
from torch_diode.types.timing import Prediction

_DIGITS = 4


@dataclass(frozen=True)
class PredictedChoice:
    """The best candidates of a problem on a chip, and what a plain compile runs there."""

    problem: MMShape
    hardware: Hardware
    candidates: int
    """Number of candidates that were ranked."""
    source: str
    """Name of the heuristic that ranked them."""
    ranked: list[Prediction]
    aten_us: float | None
    plain_compile: Candidate
    shortlists: str
    """The reason why the heuristic only shortlists for max-autotune; empty if it decides alone."""
    open_sizes: bool
    """True where times are of kernels that take their sizes as arguments."""
    notes: list[str]
    """Reasons why a compile would not use this heuristic; it then leaves the problem to torch."""

    @property
    def left_to_torch(self) -> bool:
        """True where a plain compile leaves the problem to torch."""
        return bool(self.notes or self.shortlists)

    def to_dict(self) -> dict[str, Any]:
        """The prediction as JSON has it."""
        return {
            "problem": self.problem.to_dict(),
            "hardware": self.hardware.name,
            **({"threads": self.hardware.threads} if self.hardware.threads else {}),
            "candidates": self.candidates,
            "source": self.source,
            "aten_us": self.aten_us,
            "decides_alone": not self.shortlists,
            "shortlists": self.shortlists,
            "notes": self.notes,
            "left_to_torch": self.left_to_torch,
            "plain_compile": self.plain_compile.to_dict(),
            "ranked": [
                {**p.candidate.to_dict(), "predicted_us": p.predicted_us, "sigma": p.sigma}
                for p in self.ranked
            ],
        }


def predict(
    problem: MMShape,
    hardware: str | None = None,
    model: str | None = None,
    top: int = 5,
    device: str | None = None,
    threads: int = 0,
) -> PredictedChoice:
    """Rank the candidates of a problem by predicted time; needs no GPU.

    `hardware` names the chip, this machine's if None, and `threads` are those of a CPU; `model` is
    a model file, by default the one for the chip. What the model abstains on, the analytical
    heuristic ranks.
    """
    chip = find_hardware(hardware, device, threads)
    heuristic, note = resolve_heuristic(chip, model)
    space = candidate_space(problem, chip)
    ranking, reason = heuristic.rank(problem, space)
    times = ranking.predicted_us[space.is_template(ATEN)]
    aten_us = float(times[0]) if len(times) and not math.isnan(times[0]) else None
    notes = [
        text for text in (note, reason and f"{reason}; the analytical heuristic answers") if text
    ]
    plain = None if notes else plain_ranking(problem, heuristic.first, chip)
    return PredictedChoice(
        problem,
        chip,
        len(space),
        ranking.source,
        ranking.predictions(space, top),
        aten_us,
        Candidate(ATEN) if plain is None else single_choice(*plain),
        "" if reason else heuristic.first.why_shortlists(chip),
        ranking.open_sizes,
        notes,
    )


def rank_file(
    problems: Path,
    output: Path,
    hardware: str | None = None,
    model: str | None = None,
    top: int = 10,
    device: str | None = None,
    progress: ProgressCallback = log_progress,
    threads: int = 0,
    overwrite: bool = False,
) -> int:
    """Rank the candidates of each problem in a file of JSON lines; the number of problems.

    A line has the candidates to rank in `candidates`, or none, and then gets the `top` best of all
    there are. A faulty line raises, and nothing is written.
    """
    refuse_same(output, problems)
    refuse_existing(output, overwrite)
    refuse_device(problems)
    with naming_file(problems), problems.open("rb"):
        pass  # a wrong path shows before a model is loaded
    heuristic, note = resolve_heuristic(find_hardware(hardware, device, threads), model)
    reasons: Counter[str] = Counter()
    count = 0
    with replacing(output, overwrite) as temporary, temporary.open("w", encoding="utf-8") as file:
        for answer in _rank_lines(problems, heuristic, top, reasons):
            file.write(json.dumps(answer, separators=(",", ":")) + "\n")
            count += 1
        if not count:
            raise EmptySelectionError(f"{problems}: got no problem; expected one a line")
    for text in [note, *(f"{number:,} problems {reason}" for reason, number in reasons.items())]:
        if text:
            progress(Progress(message=text))
    return count


def _rank_lines(
    path: Path, heuristic: HeuristicWithFallback, top: int, reasons: Counter[str]
) -> Iterator[dict[str, Any]]:
    with naming_file(path), path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                answer, notes = rank_record(loads(line), heuristic, top)
            except DiodeError as fault:
                raise FileFaultError(f"{path}: line {number}: {fault}") from None
            reasons.update(notes)
            yield answer


def rank_record(
    record: Any, heuristic: HeuristicWithFallback, top: int
) -> tuple[dict[str, Any], list[str]]:
    """The ranking of one problem as JSON has it, and notes on it."""
    if not isinstance(record, dict):
        raise InvalidValueError(f"got {type(record).__name__}; expected an object")
    given = record.pop("candidates", None)
    problem = MMShape.from_dict(record)
    if given is None:
        space = candidate_space(problem, heuristic.chip)
        ranking, reason = heuristic.rank(problem, space)
        best = ranking.predictions(space, top)
        ranked = [{**p.candidate.to_dict(), "predicted_us": _rounded(p.predicted_us)} for p in best]
        return {"ranked": ranked}, _notes(reason)
    if not isinstance(given, list) or not given:
        raise InvalidValueError("candidates: got no list of any; expected one, or leave it out")
    candidates = Candidates.of(map(Candidate.from_dict, given))
    ranking, reason = heuristic.rank(problem, candidates)
    times = [_rounded(time) for time in ranking.predicted_us.tolist()]
    chip = heuristic.chip
    unknown = [n for n in candidates.templates if not _can_run(n, problem, chip)]
    return {"order": ranking.order.tolist(), "predicted_us": times}, _notes(reason, *unknown)


def _can_run(template: str, problem: MMShape, chip: Hardware) -> bool:
    if chip.kind == "cpu":
        return template in (*LIBRARIES, CPP_GEMM)
    return can_offer(template, problem, chip)


def _notes(reason: str, *unknown: str) -> list[str]:
    notes = [f"by the analytical heuristic: {reason}"] if reason else []
    if unknown:
        notes.append(f"with {', '.join(unknown)}, which cannot run them: no time of that counts")
    return notes


def _rounded(time: float | None) -> float | None:
    """None where the heuristic only orders."""
    return None if time is None or math.isnan(time) else round(time, _DIGITS)


def find_hardware(name: str | None, device: str | None = None, threads: int = 0) -> Hardware:
    """The chip of a name, or this machine's; a CPU with so many threads, by default as many as
    torch runs with here."""
    return find(name, threads) if name is not None else with_threads(detect(device), threads)


@dataclass(frozen=True, eq=False)
class HeuristicWithFallback:
    """A heuristic for a chip; the analytical one ranks the problems it abstains on."""

    chip: Hardware
    first: Heuristic

    def rank(self, problem: MMShape, candidates: Candidates) -> tuple[Ranking, str]:
        """A ranking, and the reason why the first heuristic abstained, empty where it did not."""
        ranking = self.first.rank(problem, candidates, self.chip)
        if ranking is not None:
            return ranking, ""
        reason = self.first.why_abstained(problem, candidates, self.chip)
        ranking = AnalyticalHeuristic().rank(problem, candidates, self.chip)
        if ranking is None:
            raise EmptySelectionError(f"{problem}: {reason}")
        return ranking, reason


def resolve_heuristic(
    chip: Hardware, model: str | None = None
) -> tuple[HeuristicWithFallback, str]:
    """The heuristic of a model, by default of the environment's or of the chip's; the analytical
    one where there is none. And a note where a compile for that chip would not use it."""
    first, note = _first_heuristic(chip, model)
    if first is None:
        first = AnalyticalHeuristic()
        note = f"{chip.label}: no model for it; the analytical heuristic answers"
    return HeuristicWithFallback(chip, first), note


def _first_heuristic(chip: Hardware, model: str | None) -> tuple[Heuristic | None, str]:
    environment = settings.from_environment()
    is_tuned = default_heuristic.uses_tuned(environment) and tuned_folder(chip).table.exists()
    if model is None and (environment.model or environment.table or is_tuned):
        return default_heuristic.default_heuristic(chip, environment), ""
    pointer = resolve_model(model or "", chip)
    if pointer is None:
        return None, ""
    loaded = pointer.load()
    heuristic = ModelHeuristic(loaded, f"model {pointer.label}")
    if model is not None:
        loaded.require(chip)
        return heuristic, ""
    if default_heuristic.close_relative(chip, pointer.hardware):
        return heuristic, ""
    return heuristic, (
        f"{chip.name}: the model of {pointer.hardware} answers, which a compile uses for close "
        "relatives only, unless it is named"
    )
