"""Installed releases of torch, Triton and the libraries of a CPU, and their comparison."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from contextlib import suppress

# As torch names them among what it was built with.
_CPU_LIBRARIES = {
    "onednn": r"(?:MKL-DNN|oneDNN) v([\d.]+)",
    "mkl": r"Math Kernel Library Version ([\w.-]+)",
}


def versions() -> dict[str, str]:
    """Installed versions of torch and Triton without the build suffix; empty if not installed."""
    return {name: version_of(name) for name in ("torch", "triton")}


def cpu_libraries() -> dict[str, str]:
    """Versions of what runs a matmul on a CPU beside torch itself: the libraries it was built with
    and the C++ compiler that Inductor calls; without those that are not there."""
    import torch

    built_with = torch.__config__.show()
    found = {name: re.search(form, built_with) for name, form in _CPU_LIBRARIES.items()}
    compiler = shutil.which(os.environ.get("CXX", "g++"))
    known = {name: match[1] for name, match in found.items() if match}
    if compiler is not None:
        command = [compiler, "--version"]
        told = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        known["compiler"] = told.stdout.partition("\n")[0].strip()
    return {name: text for name, text in known.items() if text}


def same_release(version: str, others: Iterable[str]) -> bool:
    """True if a version has the major and minor number of one of the others: `2.11` for
    `2.11.0+cu130`."""
    return _minor(version) in map(_minor, others)


def _minor(version: str) -> str:
    return ".".join(version.partition("+")[0].split(".")[:2])


def version_of(name: str) -> str:
    """Installed version of a package without the build suffix; empty if it is not installed."""
    return _version(name).partition("+")[0]


def _version(name: str) -> str:
    with suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(name)
    # The distribution may have another name, as triton's does for AMD's chips.
    with suppress(ImportError):
        return str(getattr(importlib.import_module(name), "__version__", ""))
    return ""
