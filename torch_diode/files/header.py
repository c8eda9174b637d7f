"""File header: format name, version and provenance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch_diode.types.errors import InvalidValueError
from torch_diode.types.validation import provenance_of as provenance_of

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
