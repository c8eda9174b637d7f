"""Hardware detection, chip names and properties, and substitutes for unmeasured chips."""

from torch_diode.hardware.catalog import known, known_names, normalise, reported_names, stand_ins
from torch_diode.hardware.detect import detect, find, with_threads

__all__ = [
    "detect",
    "find",
    "known",
    "known_names",
    "normalise",
    "reported_names",
    "stand_ins",
    "with_threads",
]
