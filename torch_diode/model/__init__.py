"""Learnt heuristics: features, networks, training, evaluation, model files and their registry.

Names are loaded on first use: a compile that ranks with a model does not need the training.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch_diode.model.checkpoint import load_model, save_model
    from torch_diode.model.features.names import FEATURE_NAMES, FEATURES_VERSION
    from torch_diode.model.features.table import FeatureTable, feature_table
    from torch_diode.model.networks.timing_models import DeepMatmulTimingModel, MatmulTimingModel
    from torch_diode.model.registry import ModelPointer, ModelRegistry
    from torch_diode.model.training.trainer import TrainingOptions, train
    from torch_diode.model.wrapper import ModelWrapper

__all__ = [
    "FEATURES_VERSION",
    "FEATURE_NAMES",
    "DeepMatmulTimingModel",
    "FeatureTable",
    "MatmulTimingModel",
    "ModelPointer",
    "ModelRegistry",
    "ModelWrapper",
    "TrainingOptions",
    "feature_table",
    "load_model",
    "save_model",
    "train",
]

_NAMES = {
    "checkpoint": ("load_model", "save_model"),
    "features.names": ("FEATURES_VERSION", "FEATURE_NAMES"),
    "features.table": ("FeatureTable", "feature_table"),
    "networks.timing_models": ("DeepMatmulTimingModel", "MatmulTimingModel"),
    "registry": ("ModelPointer", "ModelRegistry"),
    "training.trainer": ("TrainingOptions", "train"),
    "wrapper": ("ModelWrapper",),
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
