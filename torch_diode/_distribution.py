"""Name of this distribution; the build of torch-diode-lib puts its own file in this place."""

from __future__ import annotations

NAME = "torch-diode"
REGISTERS_ON_IMPORT = True
