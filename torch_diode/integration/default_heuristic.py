"""The heuristic used where the user names none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from torch_diode.hardware import known
from torch_diode.heuristics.base import Heuristic
from torch_diode.integration.hooks import torch_compat
from torch_diode.integration.settings import Settings
from torch_diode.model.shipped import SHIPPED, shipped_model
from torch_diode.types.hardware import Hardware

if TYPE_CHECKING:
    from torch_diode.model.checkpoint import ModelPointer

NO_MODEL = "no model for this hardware"
NONE = "none"
_LEAST_BANDWIDTH = 2 / 3


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


def check_versions(
    heuristic: Heuristic, hardware: Hardware, settings: Settings
) -> Heuristic | None:
    """A heuristic the user named, held against the torch that is here, as a default one is: what is
    of another release is noted, or, where settings are strict, left out."""
    from torch_diode.heuristics.chain import Chain
    from torch_diode.heuristics.model import ModelHeuristic
    from torch_diode.heuristics.table import LookupTable

    if type(heuristic) is Chain:
        held = [check_versions(member, hardware, settings) for member in heuristic.heuristics]
        members = [member for member in held if member is not None]
        return Chain(*members) if members else None
    if type(heuristic) is LookupTable and not heuristic.template_hashes:
        strict = heuristic.strict or settings.strict
        return LookupTable(
            heuristic.table,
            strict,
            torch_compat.template_hashes(),
            heuristic.name,
            torch_compat.installed_versions(),
        )
    if type(heuristic) is ModelHeuristic and hasattr(heuristic.model, "notes"):
        return _noted(heuristic.model, heuristic.name, hardware, settings, heuristic.note)
    return heuristic


def _noted(
    model: Any, name: str, hardware: Hardware, settings: Settings, note: str = ""
) -> Heuristic | None:
    from torch_diode.heuristics.model import ModelHeuristic

    notes = model.notes(hardware, **torch_compat.installed_versions(), templates=torch_compat.template_hashes())
    if notes and settings.strict:
        return None
    return ModelHeuristic(model, name, note or "; ".join(notes))


def why_no_heuristic(settings: Settings) -> str:
    """Why a hardware asked about under these settings has no heuristic."""
    if settings.heuristic is None and settings.model == NONE:
        return "no model, as TORCH_DIODE_MODEL says"
    if settings.strict:
        return f"{NO_MODEL} of this very torch and triton, which strict asks for"
    return NO_MODEL


def _members(hardware: Hardware, settings: Settings) -> Iterator[Heuristic]:
    if settings.table:
        from torch_diode.heuristics.table import LookupTable

        yield LookupTable.load(
            settings.table, settings.strict, torch_compat.template_hashes(), torch_compat.installed_versions()
        )
    model = _model(hardware, settings)
    if model is not None:
        yield model


def _model(hardware: Hardware, settings: Settings) -> Heuristic | None:
    """The model the user named, or the one there is for this hardware: unasked, the first of the
    user's folders or the package's, and for close relatives only."""
    if settings.model == NONE:
        return None
    from torch_diode.model.checkpoint import load_model

    if settings.model in ("", SHIPPED):
        pointer = shipped_model(hardware) if settings.model else _auto_model(hardware)
        if pointer is None:
            return None
        model, name = pointer.load(), pointer.hardware
    else:
        model, name = load_model(settings.model), settings.model
    model.require(hardware)
    return _noted(model, f"model {name}", hardware, settings)


def _auto_model(hardware: Hardware) -> ModelPointer | None:
    from torch_diode.model.registry import ModelRegistry

    pointer = ModelRegistry().find("matmul", hardware)
    return pointer if pointer and close_relative(hardware, pointer.hardware) else None


def close_relative(hardware: Hardware, name: str) -> bool:
    """Whether a chip is so like another that the other's model may decide for it unasked: the
    architecture, as many units, and memory about as fast. An H20 is an H200 by architecture only.
    """
    if hardware.name == name:
        return True
    other = known(name)
    same = hardware.arch == other.arch and hardware.units == other.units
    ratio = hardware.memory_gbps / other.memory_gbps if other.memory_gbps else 0.0
    return same and _LEAST_BANDWIDTH <= ratio <= 1 / _LEAST_BANDWIDTH
