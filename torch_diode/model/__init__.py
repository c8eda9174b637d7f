"""Learnt heuristics: features, networks, training, evaluation, model files and their registry.

Names are loaded on first use: a compile that ranks with a model does not need the training.
"""

from torch_diode._exports import on_first_use

_EXPORTS = {
    "checkpoint": "load_model save_model",
    "features.names": "FEATURES_VERSION FEATURE_NAMES",
    "features.table": "FeatureTable feature_table",
    "networks.timing_models": "DeepMatmulTimingModel MatmulTimingModel",
    "registry": "ModelPointer ModelRegistry",
    "training.trainer": "TrainingOptions train",
    "wrapper": "ModelWrapper",
}
__getattr__, __dir__, __all__ = on_first_use(__name__, _EXPORTS)
