"""File header: format name, version and provenance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from torch_diode.types.errors import InvalidValueError

if TYPE_CHECKING:
    from torch_diode.types.dataset import Provenance


def header(kind: str, version: int, provenance: Provenance | None = None) -> dict[str, Any]:
    """The header of a file of this kind."""
    data: dict[str, Any] = {"format": f"torch-diode {kind}", "version": version}
    if provenance:
        data["provenance"] = {name: list(texts) for name, texts in sorted(provenance.items())}
    return data


def check_header(data: Any, kind: str, newest: int) -> int:
    """Check that a file is of this kind and not newer than `newest`; returns its version."""
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
    provenance = data.get("provenance", {})
    if not isinstance(provenance, dict) or not all(
        isinstance(name, str) and isinstance(texts, list) and all(isinstance(t, str) for t in texts)
        for name, texts in provenance.items()
    ):
        raise InvalidValueError("got a provenance that is not names with lists of texts")
    return {name: tuple(sorted(set(texts))) for name, texts in provenance.items()}
