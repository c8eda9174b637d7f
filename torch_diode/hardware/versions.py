"""Installed releases of torch and Triton, and their comparison."""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Iterable
from contextlib import suppress


def versions() -> dict[str, str]:
    """Installed versions of torch and Triton without the build suffix; empty if not installed."""
    return {name: _version(name).partition("+")[0] for name in ("torch", "triton")}


def same_release(version: str, others: Iterable[str]) -> bool:
    """True if a version has the major and minor number of one of the others: `2.11` for
    `2.11.0+cu130`."""
    return _minor(version) in map(_minor, others)


def _minor(version: str) -> str:
    return ".".join(version.partition("+")[0].split(".")[:2])


def _version(name: str) -> str:
    with suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(name)
    # The distribution may have another name, as triton's does for AMD's chips.
    with suppress(ImportError):
        return str(getattr(importlib.import_module(name), "__version__", ""))
    return ""
