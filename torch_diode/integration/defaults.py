"""The heuristic used where the user names none."""

from __future__ import annotations

from collections.abc import Iterator

from torch_diode.heuristics.base import Heuristic
from torch_diode.integration import releases
from torch_diode.integration.settings import Settings
from torch_diode.types.hardware import Hardware

NO_MODEL = "no model for this hardware yet"
SHIPPED = "shipped"


def default_heuristic(hardware: Hardware, settings: Settings) -> Heuristic | None:
    """The table the user points at, then the model; None where there is neither.

    A table that does not know a problem abstains, and the model is asked. A file that cannot be
    read raises, and the compile falls back to torch with a warning that names it.
    """
    members = list(_members(hardware, settings))
    if len(members) < 2:
        return members[0] if members else None
    from torch_diode.heuristics.chain import Chain

    return Chain(*members)


def _members(hardware: Hardware, settings: Settings) -> Iterator[Heuristic]:
    if settings.table:
        from torch_diode.heuristics.table import LookupTable

        yield LookupTable.load(settings.table, settings.strict, releases.template_hashes())
    model = _model(hardware, settings)
    if model is not None:
        yield model


def _model(hardware: Hardware, settings: Settings) -> Heuristic | None:
    """The model the user asked for: a file, or `shipped` for the one that came with the package.

    With none asked for there is none: a shipped model has to prove itself end to end on a real
    chip before it decides for people who only imported torch-diode.
    """
    if not settings.model:
        return None
    from torch_diode.heuristics.model import ModelHeuristic
    from torch_diode.model.checkpoint import load_model
    from torch_diode.model.registry import ModelRegistry

    if settings.model == SHIPPED:
        pointer = ModelRegistry().find("matmul", hardware)
        if pointer is None:
            return None
        model = pointer.load()
    else:
        model = load_model(settings.model)
    model.require(hardware)
    notes = model.notes(hardware, releases.torch_release(), releases.triton_release())
    if notes and settings.strict:
        return None
    return ModelHeuristic(model, f"model {model.metadata.hardware}", "; ".join(notes))
