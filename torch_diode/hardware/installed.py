"""Which releases timings are made with."""

from __future__ import annotations

import importlib
import importlib.metadata
from contextlib import suppress


def versions() -> dict[str, str]:
    """Those of torch and Triton here, without the build's name; empty where there is none."""
    found = {"torch": "", "triton": ""}
    for name in found:
        found[name] = _version(name).partition("+")[0]
    return found


def _version(name: str) -> str:
    with suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(name)
    # It may come in a distribution of another name, as triton does for AMD's chips.
    with suppress(ImportError):
        return str(getattr(importlib.import_module(name), "__version__", ""))
    return ""
