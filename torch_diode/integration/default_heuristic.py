"""The default heuristic: the user's table, the tuned one, then the model for the hardware."""

from __future__ import annotations

from collections.abc import Iterator

from torch_diode.hardware import known
from torch_diode.heuristics.base import Heuristic
from torch_diode.integration.hooks import torch_compat
from torch_diode.integration.settings import Settings
from torch_diode.integration.tuned_tables import tuned_table
from torch_diode.model.registry import SHIPPED, resolve_model
from torch_diode.types.hardware import Hardware

NO_MODEL = "no model for this hardware"
TUNING = "`torch-diode tune program.py` times its matmuls here, in a minute or so, and uses that"
NONE = "none"
_MIN_BANDWIDTH_RATIO = 2 / 3


def default_heuristic(hardware: Hardware, settings: Settings) -> Heuristic | None:
    """The table of the settings, that of `torch-diode tune`, then the model; None where there is
    none of them.

    A table abstains on a problem it does not have, and the next one decides. A file that cannot
    be read raises; the compile falls back to torch with a warning that names the file.
    """
    checked = [check_versions(each, hardware, settings) for each in _members(hardware, settings)]
    members = [member for member in checked if member is not None]
    if len(members) < 2:
        return members[0] if members else None
    from torch_diode.heuristics.chain import Chain

    return Chain(*members)


def check_versions(
    heuristic: Heuristic, hardware: Hardware, settings: Settings
) -> Heuristic | None:
    """The heuristic with a note on each table or model of another torch or triton release.

    With `settings.strict`, those are dropped instead; None where nothing is left. Other kinds of
    heuristics, and subclasses, are returned as they are.
    """
    from torch_diode.heuristics.chain import Chain
    from torch_diode.heuristics.model import ModelHeuristic

    if type(heuristic) is Chain:
        checked = [check_versions(member, hardware, settings) for member in heuristic.heuristics]
        members = [member for member in checked if member is not None]
        return Chain(*members) if members else None
    versions, hashes = torch_compat.installed_versions(), torch_compat.template_hashes()
    if type(heuristic) is ModelHeuristic:
        if not hasattr(heuristic.model, "notes"):
            return heuristic
        notes = heuristic.model.notes(hardware, **versions, templates=hashes)
        if notes and settings.strict:
            return None
        return ModelHeuristic(heuristic.model, heuristic.name, heuristic.note or "; ".join(notes))
    # Imports msgpack: only after the model, so that a default decision does without.
    from torch_diode.heuristics.table import LookupTable

    if type(heuristic) is LookupTable and not heuristic.template_hashes:
        if hardware.kind == "cpu":  # whose kernels need no triton
            versions = {"torch": versions["torch"]}
        return heuristic.compared_with(hashes, versions, heuristic.strict or settings.strict)
    return heuristic


def check_files(settings: Settings) -> None:
    """Raise where a table or a model that the settings name cannot be read."""
    if settings.table:
        from torch_diode.files.tables import read_table

        read_table(settings.table)
    if settings.model not in ("", NONE, SHIPPED):
        from torch_diode.model.checkpoint import load_weights

        load_weights(settings.model)


def why_no_heuristic(settings: Settings, hardware: Hardware) -> str:
    """Reason why no heuristic was found under these settings."""
    if settings.heuristic is None and settings.model == NONE:
        return "no model, as TORCH_DIODE_MODEL says"
    if settings.strict:
        return f"{NO_MODEL} of this very torch and triton, which strict asks for"
    can_tune = hardware.kind == "cpu" or hardware.name.startswith("nvidia-")
    return f"{NO_MODEL}; {TUNING}" if can_tune else NO_MODEL


def uses_tuned(settings: Settings) -> bool:
    """True if the tuned table may decide: not where a model is named, which is then to decide."""
    return settings.tuned and settings.model in ("", NONE)


def _members(hardware: Hardware, settings: Settings) -> Iterator[Heuristic]:
    if settings.table:
        from torch_diode.heuristics.table import LookupTable

        yield LookupTable.load(settings.table, nearest=settings.nearest)
    if uses_tuned(settings):
        table = tuned_table(hardware)
        if table is not None:
            yield table
    if settings.model != NONE:
        yield from _model(hardware, settings.model)


def _model(hardware: Hardware, named: str) -> Iterator[Heuristic]:
    """The model named by the user, or else the registered model of a close relative, from the
    user's folders first."""
    from torch_diode.heuristics.model import ModelHeuristic

    pointer = resolve_model(named, hardware)
    if pointer is None or not (named or close_relative(hardware, pointer.hardware)):
        return
    model = pointer.load()
    model.require(hardware)
    yield ModelHeuristic(model, f"model {pointer.label}")


def close_relative(hardware: Hardware, name: str) -> bool:
    """True if the model of chip `name` may rank for this hardware by default.

    Requires the same architecture and number of units, and similar memory bandwidth: an H20 shares
    only its architecture with an H200.
    """
    if hardware.name == name:
        return True
    if hardware.kind == "cpu":
        return False  # CPUs of one architecture have little in common
    other = known(name)
    same = hardware.arch == other.arch and hardware.units == other.units
    ratio = hardware.memory_gbps / other.memory_gbps if other.memory_gbps else 0.0
    return same and _MIN_BANDWIDTH_RATIO <= ratio <= 1 / _MIN_BANDWIDTH_RATIO
