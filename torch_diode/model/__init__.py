"""What is learned: features, networks, training, evaluation, model files and their registry.

Names are loaded when they are asked for: a compile that asks a model does not need the training,
and a network in torch only while the model's file is checked against it.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch_diode.model.checkpoint import ModelPointer, load_model, save_model
    from torch_diode.model.features.names import FEATURE_NAMES, FEATURES_VERSION
    from torch_diode.model.features.table import FeatureTable, feature_table
    from torch_diode.model.networks.timing_models import DeepMatmulTimingModel, MatmulTimingModel
    from torch_diode.model.registry import ModelRegistry
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

_MODULES = {
    "DeepMatmulTimingModel": "networks.timing_models",
    "FEATURES_VERSION": "features.names",
    "FEATURE_NAMES": "features.names",
    "FeatureTable": "features.table",
    "MatmulTimingModel": "networks.timing_models",
    "ModelPointer": "checkpoint",
    "ModelRegistry": "registry",
    "ModelWrapper": "wrapper",
    "TrainingOptions": "training.trainer",
    "feature_table": "features.table",
    "load_model": "checkpoint",
    "save_model": "checkpoint",
    "train": "training.trainer",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
