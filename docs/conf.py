"""The documentation's settings."""

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
