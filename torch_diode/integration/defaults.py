"""The heuristic used where the user names none."""

from __future__ import annotations

from collections.abc import Iterator

from torch_diode.heuristics.base import Heuristic
from torch_diode.integration import releases
from torch_diode.integration.settings import Settings
from torch_diode.types.errors import MissingPartError
from torch_diode.types.hardware import Hardware

NO_MODEL = "no model for this hardware yet"


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
    """The model for this hardware: the registry of trained models plugs in here."""
    if settings.model:
        raise MissingPartError(
            f"model: got {settings.model!r}; this build cannot load models yet; unset "
            "TORCH_DIODE_MODEL"
        )
    return None
