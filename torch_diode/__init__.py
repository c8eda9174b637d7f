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
    from torch_diode.collection.feedback_timings import CollectionMode
    from torch_diode.files.datasets import read_dataset as load_dataset
    from torch_diode.heuristics.analytical import AnalyticalHeuristic
    from torch_diode.heuristics.base import Heuristic
    from torch_diode.heuristics.chain import Chain
    from torch_diode.heuristics.custom import CustomHeuristic, heuristic
    from torch_diode.heuristics.model import ModelHeuristic
    from torch_diode.heuristics.table import LookupTable
    from torch_diode.integration.autotune.feedback import MatmulDatasetCollector
    from torch_diode.integration.base import BaseIntegration
    from torch_diode.integration.hooks.choices import DiodeInductorChoices
    from torch_diode.integration.matmul import MatmulIntegration
    from torch_diode.integration.rank import rank
    from torch_diode.integration.registration import disable, enable, explain, status, using
    from torch_diode.model.registry import ModelPointer
    from torch_diode.model.networks.timing_models import DeepMatmulTimingModel, MatmulTimingModel
    from torch_diode.model.registry import ModelRegistry
    from torch_diode.model.registry import load_registered as load_model
    from torch_diode.model.wrapper import ModelWrapper
    from torch_diode.types.candidate import Candidate, TritonGEMMConfig
    from torch_diode.types.candidate_arrays import Candidates
    from torch_diode.types.dataset import Dataset
    from torch_diode.types.errors import DiodeError
    from torch_diode.types.hardware import Hardware
    from torch_diode.types.problem import MMShape
    from torch_diode.types.ranking import Ranking
    from torch_diode.types.shapes import OperationShapeSet, ShapeSet
    from torch_diode.types.solution import Solution
    from torch_diode.types.table import Table
    from torch_diode.types.timing import Prediction, Timing

__version__ = "0.1.0"

__all__ = [
    "AnalyticalHeuristic",
    "BaseIntegration",
    "Candidate",
    "Candidates",
    "Chain",
    "CollectionMode",
    "CustomHeuristic",
    "Dataset",
    "DeepMatmulTimingModel",
    "DiodeError",
    "DiodeInductorChoices",
    "Hardware",
    "Heuristic",
    "LookupTable",
    "MMShape",
    "MatmulDatasetCollector",
    "MatmulIntegration",
    "MatmulTimingModel",
    "ModelHeuristic",
    "ModelPointer",
    "ModelRegistry",
    "ModelWrapper",
    "OperationShapeSet",
    "Prediction",
    "Ranking",
    "ShapeSet",
    "Solution",
    "Table",
    "Timing",
    "TritonGEMMConfig",
    "disable",
    "enable",
    "explain",
    "heuristic",
    "load_dataset",
    "load_model",
    "rank",
    "status",
    "using",
]

_HOMES = {
    "AnalyticalHeuristic": "heuristics.analytical",
    "BaseIntegration": "integration.base",
    "Candidate": "types.candidate",
    "Candidates": "types.candidate_arrays",
    "Chain": "heuristics.chain",
    "CollectionMode": "collection.feedback_timings",
    "CustomHeuristic": "heuristics.custom",
    "Dataset": "types.dataset",
    "DeepMatmulTimingModel": "model.networks.timing_models",
    "DiodeError": "types.errors",
    "DiodeInductorChoices": "integration.hooks.choices",
    "Hardware": "types.hardware",
    "Heuristic": "heuristics.base",
    "LookupTable": "heuristics.table",
    "MMShape": "types.problem",
    "MatmulDatasetCollector": "integration.autotune.feedback",
    "MatmulIntegration": "integration.matmul",
    "MatmulTimingModel": "model.networks.timing_models",
    "ModelHeuristic": "heuristics.model",
    "ModelPointer": "model.registry",
    "ModelRegistry": "model.registry",
    "ModelWrapper": "model.wrapper",
    "OperationShapeSet": "types.shapes",
    "Prediction": "types.timing",
    "Ranking": "types.ranking",
    "ShapeSet": "types.shapes",
    "Solution": "types.solution",
    "Table": "types.table",
    "Timing": "types.timing",
    "TritonGEMMConfig": "types.candidate",
    "disable": "integration.registration",
    "enable": "integration.registration",
    "explain": "integration.registration",
    "heuristic": "heuristics.custom",
    "load_dataset": "files.datasets:read_dataset",
    "load_model": "model.registry:load_registered",
    "rank": "integration.rank",
    "status": "integration.registration",
    "using": "integration.registration",
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


if _distribution.REGISTERS_ON_IMPORT:
    from torch_diode.integration.registration import register_on_import

    register_on_import()
    del register_on_import
