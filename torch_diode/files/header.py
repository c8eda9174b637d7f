"""What every file of ours says of itself first: what it is, and which version of that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch_diode.types.dataset import Provenance
from torch_diode.types.errors import InvalidValueError


def header(kind: str, version: int, provenance: Provenance | None = None) -> dict[str, Any]:
    """The header of a file of this kind."""
    data: dict[str, Any] = {"format": f"torch-diode {kind}", "version": version}
    if provenance:
        data["provenance"] = {name: list(met) for name, met in sorted(provenance.items())}
    return data


def check_header(data: Any, kind: str, newest: int) -> int:
    """The version, if this is a file of that kind and of a version this code knows."""
    if not isinstance(data, dict) or data.get("format") != f"torch-diode {kind}":
        got = data.get("format") if isinstance(data, dict) else type(data).__name__
        raise InvalidValueError(f"got format {got!r:.60}; expected 'torch-diode {kind}'")
    version = data.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise InvalidValueError(f"got version {version!r:.40}; expected a whole number")
    if version > newest:
        raise InvalidValueError(
            f"got version {version}; this torch-diode reads up to {newest}, upgrade it"
        )
    return version


def provenance_of(data: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """The header's provenance: names, each with a list of texts."""
    found = data.get("provenance", {})
    if not isinstance(found, dict) or not all(
        isinstance(name, str) and isinstance(met, list) and all(isinstance(t, str) for t in met)
        for name, met in found.items()
    ):
        raise InvalidValueError("got a provenance that is not names with lists of texts")
    return {name: tuple(sorted(set(met))) for name, met in found.items()}
