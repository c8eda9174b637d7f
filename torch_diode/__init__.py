"""torch-diode: heuristics for torch.compile.

    import torch_diode          # torch.compile now picks kernels with the model for this chip
    torch_diode.status()        # what that did, step by step

Everything public is here, and nothing is loaded before it is used: importing this costs next to
nothing, and torch's compiler is not imported before torch itself needs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch_diode import _distribution
from torch_diode._exports import on_first_use

# isort: off
if TYPE_CHECKING:  # `as` tells type checkers that a name is exported
    from torch_diode.collection.feedback_timings import CollectionMode as CollectionMode
    from torch_diode.collection.sampling_options import ShapeSampling as ShapeSampling
    from torch_diode.files.datasets import read_dataset
    from torch_diode.heuristics.analytical import AnalyticalHeuristic as AnalyticalHeuristic
    from torch_diode.heuristics.attention_table import AttentionTable as AttentionTable
    from torch_diode.heuristics.base import Heuristic as Heuristic
    from torch_diode.heuristics.chain import Chain as Chain
    from torch_diode.heuristics.custom import CustomHeuristic as CustomHeuristic
    from torch_diode.heuristics.custom import heuristic as heuristic
    from torch_diode.heuristics.model import ModelHeuristic as ModelHeuristic
    from torch_diode.heuristics.table import LookupTable as LookupTable
    from torch_diode.integration.autotune.feedback import (
        MatmulDatasetCollector as MatmulDatasetCollector,
    )
    from torch_diode.integration.base import BaseIntegration as BaseIntegration
    from torch_diode.integration.hooks.choices import DiodeInductorChoices as DiodeInductorChoices
    from torch_diode.integration.matmul import MatmulIntegration as MatmulIntegration
    from torch_diode.integration.rank import rank as rank
    from torch_diode.integration.registration import disable as disable
    from torch_diode.integration.registration import enable as enable
    from torch_diode.integration.registration import explain as explain
    from torch_diode.integration.registration import register_integration as register_integration
    from torch_diode.integration.registration import status as status
    from torch_diode.integration.registration import using as using
    from torch_diode.model.networks.timing_models import (
        DeepMatmulTimingModel as DeepMatmulTimingModel,
    )
    from torch_diode.model.networks.timing_models import MatmulTimingModel as MatmulTimingModel
    from torch_diode.model.registry import ModelPointer as ModelPointer
    from torch_diode.model.registry import ModelRegistry as ModelRegistry
    from torch_diode.model.registry import load_registered
    from torch_diode.model.registry import register_model as register_model
    from torch_diode.model.wrapper import ModelWrapper as ModelWrapper
    from torch_diode.report.build import report
    from torch_diode.toolkit.collecting.collect import CollectOptions as CollectOptions
    from torch_diode.toolkit.collecting.collect import CollectionResult as CollectionResult
    from torch_diode.toolkit.collecting.collect import collect as collect
    from torch_diode.toolkit.collecting.collect_and_train import (
        CollectAndTrainResult as CollectAndTrainResult,
    )
    from torch_diode.toolkit.collecting.collect_and_train import (
        collect_and_train as collect_and_train,
    )
    from torch_diode.toolkit.collecting.create_validation import (
        create_validation as create_validation,
    )
    from torch_diode.toolkit.datasets import convert as convert
    from torch_diode.toolkit.explain import Explanation as Explanation
    from torch_diode.toolkit.explain import explain_program as explain_program
    from torch_diode.toolkit.max_autotune import MaxAutotuneValidation as MaxAutotuneValidation
    from torch_diode.toolkit.max_autotune import validate_max_autotune as validate_max_autotune
    from torch_diode.toolkit.predict import PredictedChoice as PredictedChoice
    from torch_diode.toolkit.predict import predict as predict
    from torch_diode.toolkit.progress import Progress as Progress
    from torch_diode.toolkit.collecting.trace import TraceResult as TraceResult
    from torch_diode.toolkit.collecting.trace import trace as trace
    from torch_diode.toolkit.tables import build_table as build_table
    from torch_diode.toolkit.tables import build_table_from_model as build_table_from_model
    from torch_diode.toolkit.training.options import TrainOptions as TrainOptions
    from torch_diode.toolkit.training.train import TrainingResult as TrainingResult
    from torch_diode.toolkit.training.train import train as train
    from torch_diode.toolkit.validate import Validation as Validation
    from torch_diode.toolkit.validate import validate as validate
    from torch_diode.tuning.result import TuneResult as TuneResult
    from torch_diode.tuning.tune import TuneOptions as TuneOptions
    from torch_diode.tuning.tune import tune as tune
    from torch_diode.types.candidate import Candidate as Candidate
    from torch_diode.types.candidate import TritonGEMMConfig as TritonGEMMConfig
    from torch_diode.types.candidate_arrays import Candidates as Candidates
    from torch_diode.types.dataset import Dataset as Dataset
    from torch_diode.types.errors import DiodeError as DiodeError
    from torch_diode.types.hardware import Hardware as Hardware
    from torch_diode.types.problem import MMShape as MMShape
    from torch_diode.types.ranking import Ranking as Ranking
    from torch_diode.types.shapes import OperationShapeSet as OperationShapeSet
    from torch_diode.types.shapes import ShapeSet as ShapeSet
    from torch_diode.types.solution import Solution as Solution
    from torch_diode.types.table import Table as Table
    from torch_diode.types.timing import Prediction as Prediction
    from torch_diode.types.timing import Timing as Timing

    load_dataset, load_model, write_report = read_dataset, load_registered, report
# isort: on

__version__ = "0.2.0"

# Public names by module; `name=attribute` where the module calls it otherwise.
_EXPORTS = {
    "collection.feedback_timings": "CollectionMode",
    "collection.sampling_options": "ShapeSampling",
    "files.datasets": "load_dataset=read_dataset",
    "heuristics.analytical": "AnalyticalHeuristic",
    "heuristics.attention_table": "AttentionTable",
    "heuristics.base": "Heuristic",
    "heuristics.chain": "Chain",
    "heuristics.custom": "CustomHeuristic heuristic",
    "heuristics.model": "ModelHeuristic",
    "heuristics.table": "LookupTable",
    "integration.autotune.feedback": "MatmulDatasetCollector",
    "integration.base": "BaseIntegration",
    "integration.hooks.choices": "DiodeInductorChoices",
    "integration.matmul": "MatmulIntegration",
    "integration.rank": "rank",
    "integration.registration": "disable enable explain register_integration status using",
    "model.networks.timing_models": "DeepMatmulTimingModel MatmulTimingModel",
    "model.registry": "ModelPointer ModelRegistry load_model=load_registered register_model",
    "model.wrapper": "ModelWrapper",
    "report.build": "write_report=report",
    "toolkit.collecting.collect": "CollectOptions CollectionResult collect",
    "toolkit.collecting.collect_and_train": "CollectAndTrainResult collect_and_train",
    "toolkit.collecting.create_validation": "create_validation",
    "toolkit.datasets": "convert",
    "toolkit.explain": "Explanation explain_program",
    "toolkit.max_autotune": "MaxAutotuneValidation validate_max_autotune",
    "toolkit.predict": "PredictedChoice predict",
    "toolkit.progress": "Progress",
    "toolkit.tables": "build_table build_table_from_model",
    "toolkit.collecting.trace": "TraceResult trace",
    "toolkit.training.options": "TrainOptions",
    "toolkit.training.train": "TrainingResult train",
    "toolkit.validate": "Validation validate",
    "tuning.result": "TuneResult",
    "tuning.tune": "TuneOptions tune",
    "types.candidate": "Candidate TritonGEMMConfig",
    "types.candidate_arrays": "Candidates",
    "types.dataset": "Dataset",
    "types.errors": "DiodeError",
    "types.hardware": "Hardware",
    "types.problem": "MMShape",
    "types.ranking": "Ranking",
    "types.shapes": "OperationShapeSet ShapeSet",
    "types.solution": "Solution",
    "types.table": "Table",
    "types.timing": "Prediction Timing",
}
__getattr__, __dir__, __all__ = on_first_use(__name__, _EXPORTS)

if _distribution.REGISTERS_ON_IMPORT:
    from torch_diode import _earlier_release

    _earlier_release.name_new_modules()
    del _earlier_release
    from torch_diode.integration.registration import register_on_import

    register_on_import()
    del register_on_import
