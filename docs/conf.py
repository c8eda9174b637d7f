"""The documentation's settings."""

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

project = "torch-diode"
author = "The torch-diode authors"
copyright = "2026, the torch-diode authors"  # noqa: A001 - Sphinx wants this name
extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "torch-diode"
html_static_path = ["_static"]
html_css_files = ["tables.css"]
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints = "description"

CARD = Path(__file__).parent.parent / "trained_models/matmul/nvidia-h200/matmul.md"


def without_card(_app: Any, page: str, text: list[str]) -> None:
    """A model that was just trained may have no card yet; the rest of the site is built anyway."""
    if page == "model_card" and not CARD.is_file():
        text[0] = (
            "# The model's card\n\nThere is none in this checkout; `torch-diode validate-model "
            "--write-card` writes it.\n"
        )


def with_references(_app: Any, page: str, text: list[str]) -> None:
    """Each name of a `reference` block gets its docstring, arguments and types."""
    if page == "api":
        text[0] = re.sub(
            r"```\{reference\}\n(.*?)```",
            lambda block: "".join(map(_directive, block[1].split())),
            text[0],
            flags=re.DOTALL,
        )


def _directive(name: str) -> str:
    module, _, last = name.rpartition(".")
    found = getattr(importlib.import_module(module), last, None) or importlib.import_module(name)
    kind, members = "function", ""
    if inspect.ismodule(found):
        kind, members = "module", "   :members:\n"
    elif inspect.isclass(found):
        kind = "exception" if issubclass(found, Exception) else "class"
        members = "   :members:\n"
    return f"```{{eval-rst}}\n.. auto{kind}:: {name}\n{members}```\n\n"


def setup(app: Any) -> None:
    """Connect what is above."""
    app.connect("source-read", without_card)
    app.connect("source-read", with_references)
