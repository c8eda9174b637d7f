"""Which chip this is, what it is called, and which chip can stand in for it."""

from torch_diode.hardware.catalog import known, known_names, normalise, reported_names, stand_ins
from torch_diode.hardware.detect import detect

__all__ = ["detect", "known", "known_names", "normalise", "reported_names", "stand_ins"]
