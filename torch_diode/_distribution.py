"""Which distribution this is; the build of torch-diode-lib puts its own file in this place."""

from __future__ import annotations

NAME = "torch-diode"
REGISTERS_ON_IMPORT = True
