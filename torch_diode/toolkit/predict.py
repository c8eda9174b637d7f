"""Who is asked about a problem on the command line, and on behalf of which chip."""

from __future__ import annotations

from dataclasses import dataclass

from torch_diode.hardware import detect, known, known_names, normalise
from torch_diode.heuristics import AnalyticalHeuristic
from torch_diode.heuristics.base import Heuristic
from torch_diode.heuristics.model import ModelHeuristic
from torch_diode.integration import default_heuristic, settings
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.errors import EmptySelectionError, MissingPartError
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape
from torch_diode.types.ranking import Ranking


def chip_named(name: str | None, device: str | None = None) -> Hardware:
    """The chip to answer for: the one named, or this machine's GPU."""
    if name is not None:
        here = detect(device) if normalise(name) not in known_names() else None
        return here if here is not None and here.name == normalise(name) else known(name)
    found = detect(device)
    if found.kind == "cpu":
        raise MissingPartError(
            "hardware: got a machine without a GPU; expected one, or the name of a chip to answer "
            "for, which need not be here; give --hardware nvidia-h200"
        )
    return found


@dataclass(frozen=True, eq=False)
class HeuristicWithFallback:
    """A heuristic, and the analytical one behind it for what it does not know."""

    chip: Hardware
    first: Heuristic
    last: Heuristic

    def rank(self, problem: MMShape, candidates: Candidates) -> tuple[Ranking, str]:
        """A ranking, and why the first one did not give it (nothing where it did)."""
        ranking = self.first.rank(problem, candidates, self.chip)
        if ranking is not None:
            return ranking, ""
        why = self.first.why_abstained(problem, candidates, self.chip)
        ranking = self.last.rank(problem, candidates, self.chip)
        if ranking is None:
            raise EmptySelectionError(f"{problem}: {why}")
        return ranking, why


def resolve_heuristic(
    chip: Hardware, model: str | None = None
) -> tuple[HeuristicWithFallback, str]:
    """The model named, or the one set in the environment, or the one for the chip or a relative;
    where there is none, the analytical heuristic. And, where a compile for that chip would not ask
    it, a sentence that says so."""
    last = AnalyticalHeuristic()
    first, note = _first(chip, model)
    if first is None:
        first, note = last, f"{chip.name}: no model for it; the analytical heuristic answers"
    return HeuristicWithFallback(chip, first, last), note


def _first(chip: Hardware, model: str | None) -> tuple[Heuristic | None, str]:
    from torch_diode.model.checkpoint import load_model

    if model is not None:
        loaded = load_model(model)
        loaded.require(chip)
        return ModelHeuristic(loaded, f"model {model}"), ""
    set_by_user = settings.from_environment()
    if set_by_user.model or set_by_user.table:
        return default_heuristic.default_heuristic(chip, set_by_user), ""
    return _auto_model(chip)


def _auto_model(chip: Hardware) -> tuple[Heuristic | None, str]:
    """The model there is for a chip, be it a distant relative's: a guess, where a compile has
    none, is worth showing."""
    from torch_diode.model.registry import ModelRegistry

    pointer = ModelRegistry().find("matmul", chip)
    if pointer is None:
        return None, ""
    found = ModelHeuristic(pointer.load(), f"model {pointer.hardware}")
    if default_heuristic.close_relative(chip, pointer.hardware):
        return found, ""
    return found, (
        f"{chip.name}: the model of {pointer.hardware} answers, which a compile asks for its close "
        "relatives only, unless it is named"
    )
