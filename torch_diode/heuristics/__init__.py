"""How a decision is made: the protocol, and model, table, custom and analytical behind it."""

from torch_diode.heuristics.analytical import AnalyticalHeuristic
from torch_diode.heuristics.base import Heuristic
from torch_diode.heuristics.chain import Chain
from torch_diode.heuristics.custom import CustomHeuristic, heuristic
from torch_diode.heuristics.model import ModelHeuristic, TimingModel
from torch_diode.heuristics.table import LookupTable

__all__ = [
    "AnalyticalHeuristic",
    "Chain",
    "CustomHeuristic",
    "Heuristic",
    "LookupTable",
    "ModelHeuristic",
    "TimingModel",
    "heuristic",
]
