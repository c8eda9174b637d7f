"""Which distribution this is: the library, which does nothing until it is asked to."""

from __future__ import annotations

NAME = "torch-diode-lib"
REGISTERS_ON_IMPORT = False
