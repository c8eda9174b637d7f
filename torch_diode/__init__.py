"""torch-diode: heuristics for torch.compile.

    import torch_diode          # torch.compile now picks kernels with the model for this chip
    torch_diode.status()        # what that did, step by step

Everything public is here, and nothing is loaded before it is used: importing this costs next to
nothing, and torch's compiler is not imported before torch itself needs it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from torch_diode import _distribution

if TYPE_CHECKING:
    from torch_diode.files.datasets import read_dataset as load_dataset
    from torch_diode.types.candidate import Candidate, TritonGEMMConfig
    from torch_diode.types.dataset import Dataset
    from torch_diode.types.errors import DiodeError
    from torch_diode.types.hardware import Hardware
    from torch_diode.types.problem import MMShape
    from torch_diode.types.shapes import OperationShapeSet, ShapeSet
    from torch_diode.types.solution import Solution
    from torch_diode.types.table import Table
    from torch_diode.types.timing import Prediction, Timing

__version__ = "0.1.0"

__all__ = [
    "Candidate",
    "Dataset",
    "DiodeError",
    "Hardware",
    "MMShape",
    "OperationShapeSet",
    "Prediction",
    "ShapeSet",
    "Solution",
    "Table",
    "Timing",
    "TritonGEMMConfig",
    "load_dataset",
]

_HOMES = {
    "Candidate": "types.candidate",
    "Dataset": "types.dataset",
    "DiodeError": "types.errors",
    "Hardware": "types.hardware",
    "MMShape": "types.problem",
    "OperationShapeSet": "types.shapes",
    "Prediction": "types.timing",
    "ShapeSet": "types.shapes",
    "Solution": "types.solution",
    "Table": "types.table",
    "Timing": "types.timing",
    "TritonGEMMConfig": "types.candidate",
    "load_dataset": "files.datasets:read_dataset",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'torch_diode' has no attribute {name!r}")
    module, _, attribute = home.partition(":")
    value = getattr(importlib.import_module(f"torch_diode.{module}"), attribute or name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
