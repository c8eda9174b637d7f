"""Modules and names that release 0.1.1 had: importing one says what stands for it now."""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from typing import Any

_MODULES = {
    "types.matmul_types": "MMShape, TritonGEMMConfig, ShapeSet, OperationShapeSet, Solution, Table",
    "types.matmul_dataset": "Dataset, Timing",
    "types.json_serializable": "serialize and parse of each type",
    "types.kernel_lut": "LookupTable",
    "collection.matmul_dataset_collector": "MatmulDatasetCollector, CollectionMode",
    "collection.matmul_data_utils": "collect, create_validation",
    "collection.generic_data_utils": "convert",
    "model.matmul_timing_model": "MatmulTimingModel, DeepMatmulTimingModel",
    "model.matmul_model_v1": "MatmulTimingModel",
    "model.matmul_model_trainer": "train, TrainOptions",
    "model.matmul_model_config": "TrainOptions",
    "model.matmul_dataset_loader": "load_dataset, train",
    "model.directory_dataset_loader": "load_dataset, train",
    "model.matmul_inference": "rank, predict, ModelWrapper",
    "model.model_utils": "train, validate, validate_max_autotune",
    "model.model_utils_common": "train",
    "model.model_wrapper": "ModelWrapper, load_model",
    "model_registry": "ModelRegistry, ModelPointer, register_model",
    "integration.base_integration": "BaseIntegration, ModelPointer, register_integration, status",
    "integration.inductor_integration": "DiodeInductorChoices, enable",
    "integration.matmul_integration": "MatmulIntegration, enable",
    "integration.kernel_conversions": "Candidate, TritonGEMMConfig",
    "utils": "torch_diode.__all__",
}
"""By module, the names to import from `torch_diode` instead."""
_NAMES = {
    "torch_diode": {
        "get_import_status": "status",
        "get_integration_info": "status",
        "get_model_info": "ModelRegistry().manifest",
        "get_model_registry": "ModelRegistry",
        "get_debug_flags": "explain",
        "set_debug_flag": "explain",
    },
    "torch_diode.integration": {
        "create_diode_choices": "DiodeInductorChoices",
        "install_diode_choices": "enable",
        "IntegrationRegistry": "register_integration",
        "get_integration_registry": "register_integration",
        "integrate_all": "enable",
        "get_integration_status": "status",
        "discover_and_register_integrations": "enable",
        "create_matmul_integration": "MatmulIntegration",
    },
    "torch_diode.model": {
        "MatmulModelV1": "MatmulTimingModel",
        "NeuralNetwork": "MatmulTimingModel",
        "init_model_weights": "train",
        "save_model_checkpoint": "train",
        "MatmulInferenceInterface": "rank",
        "MatmulFeatureProcessor": "ModelWrapper",
        "UnifiedMatmulPredictor": "predict",
    },
}
"""By package, the names it had and what of `torch_diode` stands for each."""


class _Finder(MetaPathFinder):
    def find_spec(self, fullname: str, *more: Any) -> None:
        """Explain the import of an earlier module; called after every other finder failed."""
        package, _, name = fullname.partition(".")
        if package == "torch_diode" and name in _MODULES:
            raise ModuleNotFoundError(
                f"{fullname}: a module of torch-diode 0.1.1; now in torch_diode itself: "
                f"{_MODULES[name]}; see docs/coming_from_0_1_1.md",
                name=fullname,
            )


def refuse(package: str, name: str) -> None:
    """Raise for a name of the earlier release; an `ImportError`, since `from … import` would hide
    the text of an `AttributeError`."""
    if name in _NAMES.get(package, {}):
        raise ImportError(
            f"{package}.{name}: of torch-diode 0.1.1; now torch_diode.{_NAMES[package][name]}; see "
            "docs/coming_from_0_1_1.md",
            name=package,
        )


def name_new_modules() -> None:
    """Have the import of a module of the earlier release name what took its place."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())
