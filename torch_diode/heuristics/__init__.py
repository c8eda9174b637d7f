"""Heuristics: the protocol, and model, table, custom and analytical implementations.

Names are imported on first use: a compile with a model does not load the libraries of tables.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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

_MODULES = {
    "AnalyticalHeuristic": "analytical",
    "Chain": "chain",
    "CustomHeuristic": "custom",
    "Heuristic": "base",
    "LookupTable": "table",
    "ModelHeuristic": "model",
    "TimingModel": "model",
    "heuristic": "custom",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
