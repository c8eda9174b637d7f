"""The documentation's settings."""

from pathlib import Path
from typing import Any

project = "torch-diode"
author = "The torch-diode authors"
copyright = "2026, the torch-diode authors"  # noqa: A001 - Sphinx wants this name
extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "torch-diode"
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


def setup(app: Any) -> None:
    """Connect what is above."""
    app.connect("source-read", without_card)
