"""The errors torch-diode raises, all under one root.

Every message states in one sentence what was got, what was expected and what to do about it: the
command line prints it unchanged and exits with code 2.
"""

from __future__ import annotations


class DiodeError(Exception):
    """Root of every error torch-diode raises on purpose."""


class InvalidValueError(DiodeError, ValueError):
    """A field of a type was given a value it cannot hold."""


class FileFaultError(DiodeError):
    """A file cannot be read, is not what it should be, or cannot be written."""


class EmptySelectionError(DiodeError):
    """A filter or a query left nothing to work on."""


class HardwareMismatchError(DiodeError):
    """Data or a model of one hardware was to be used for another."""


class MissingPartError(DiodeError):
    """Something this needs is not installed or not on this machine (a GPU, an extra)."""
