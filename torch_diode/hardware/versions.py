"""Releases of torch and triton: which count as the same."""

from __future__ import annotations

from collections.abc import Iterable


def same_release(here: str, met: Iterable[str]) -> bool:
    """Whether a release is one of those met, whatever patch or build of it: `2.11` of
    `2.11.0+cu130`."""
    return _minor(here) in map(_minor, met)


def _minor(version: str) -> str:
    return ".".join(version.partition("+")[0].split(".")[:2])
