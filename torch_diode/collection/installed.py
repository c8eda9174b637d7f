"""Which releases timings are made with."""

from __future__ import annotations

import importlib.metadata
from contextlib import suppress


def releases() -> dict[str, str]:
    """Those of torch and Triton here, without the build's name; empty where there is none."""
    found = {"torch": "", "triton": ""}
    for name in found:
        with suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name).partition("+")[0]
    return found
