"""Builds torch-diode-lib from the same tree as torch-diode.

Both distributions answer to `import torch_diode`, and pip lets two distributions own one file: if
they did, removing either would take the other's files along. So this one keeps its package in a
directory of its own, which a one-line .pth file puts at the end of Python's path. With both
installed the full one is found first, and either can be removed without harm to the other.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
HOME = "torch_diode_lib"
SHARED = ("version", "dependencies", "authors", "keywords", "classifiers")
EXTRAS = ("report", "cluster")


class CustomMetadataHook(MetadataHookInterface):
    """Takes what both distributions share from the root's pyproject.toml."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Called by hatchling."""
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        metadata |= {name: project[name] for name in SHARED}
        extras = project["optional-dependencies"]
        metadata["optional-dependencies"] = {name: extras[name] for name in EXTRAS}


class CustomBuildHook(BuildHookInterface):
    """Puts the package, the library's own distribution file and the .pth into the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling."""
        package = ROOT / "torch_diode"
        included = {
            str(file): f"{HOME}/torch_diode/{file.relative_to(package).as_posix()}"
            for file in sorted(package.rglob("*"))
            if file.is_file() and "__pycache__" not in file.parts
        }
        del included[str(package / "_distribution.py")]
        included[str(HERE / "distribution.py")] = f"{HOME}/torch_diode/_distribution.py"
        included[str(HERE / f"{HOME}.pth")] = f"{HOME}.pth"
        included[str(ROOT / "LICENSE")] = f"{HOME}/LICENSE"
        build_data["force_include"] |= included
