"""Which chip this is, what it is called, and which chip can stand in for it."""

from torch_diode.hardware.detect import detect
from torch_diode.hardware.names import known, known_names, normalise, reported_names, stand_ins

__all__ = ["detect", "known", "known_names", "normalise", "reported_names", "stand_ins"]
