"""Heuristics: the protocol, and model, table, custom and analytical implementations.

Names are imported on first use: a compile with a model does not load the libraries of tables.
"""

from typing import TYPE_CHECKING

from torch_diode._exports import on_first_use

if TYPE_CHECKING:
    from torch_diode.heuristics.analytical import AnalyticalHeuristic as AnalyticalHeuristic
    from torch_diode.heuristics.attention_table import AttentionTable as AttentionTable
    from torch_diode.heuristics.base import Heuristic as Heuristic
    from torch_diode.heuristics.chain import Chain as Chain
    from torch_diode.heuristics.custom import CustomHeuristic as CustomHeuristic
    from torch_diode.heuristics.custom import heuristic as heuristic
    from torch_diode.heuristics.model import ModelHeuristic as ModelHeuristic
    from torch_diode.heuristics.model import TimingModel as TimingModel
    from torch_diode.heuristics.table import LookupTable as LookupTable

_EXPORTS = {
    "analytical": "AnalyticalHeuristic",
    "attention_table": "AttentionTable",
    "base": "Heuristic",
    "chain": "Chain",
    "custom": "CustomHeuristic heuristic",
    "model": "ModelHeuristic TimingModel",
    "table": "LookupTable",
}
__getattr__, __dir__, __all__ = on_first_use(__name__, _EXPORTS)
