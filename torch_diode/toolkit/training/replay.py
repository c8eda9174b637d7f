"""What keeps a model from forgetting while it is trained on a user's few problems.

Problems are drawn all over the range the model was trained on, and its own predictions for them
are mixed in as if they had been measured: where the user's data say nothing, it stays what it was.
No data of the first training is needed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from torch_diode.collection.shape_sampling import LogNormal, ShapeSource
from torch_diode.model.evaluation.scoring import predict_times
from torch_diode.model.features.extractor import TEMPLATES
from torch_diode.model.features.problem_arrays import ProblemArrays
from torch_diode.model.features.table import FeatureTable, unmeasured_table
from torch_diode.model.metadata import ModelMetadata
from torch_diode.model.networks.timing_models import TimingNetwork
from torch_diode.model.training.candidate_sampling import near_choices
from torch_diode.types.candidate import ATEN, DECOMPOSE_K
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape

_BEST, _OTHERS = 48, 48
"""Of each problem's candidates: those the model thinks best, and about so many of the rest."""
_MULTIPLES = (1, 8, 64)


def replay(
    network: TimingNetwork, metadata: ModelMetadata, hardware: Hardware, count: int, seed: int
) -> FeatureTable:
    """About `count` drawn problems with the times a network predicts for them."""
    problems = list(_problems(metadata, count, seed))
    templates = (ATEN, DECOMPOSE_K, *TEMPLATES)
    chosen = near_choices(
        problems, metadata.kind, network, hardware, templates, _BEST, _OTHERS, seed
    )
    table = unmeasured_table(problems, chosen, hardware)
    return replace(table, time_us=predict_times(network, table))


def joined(table: FeatureTable, other: FeatureTable) -> FeatureTable:
    """Both tables' rows and problems; the second one's stand in no dataset."""
    first = len(table.problem)
    names = ("problem", "vendor", "roofline", "config", "is_aten", "time_us", "noise", "splits")
    together = {
        name: np.concatenate([getattr(table, name), getattr(other, name)]) for name in names
    }
    moved = np.where(other.split < 0, -1, other.split + len(table.splits))
    return FeatureTable(
        **together,
        arrays=ProblemArrays.joined([table.arrays, other.arrays]),
        group=np.concatenate([table.group, other.group + first]),
        rows=np.concatenate([table.rows, np.full(len(other.rows), -1)]),
        split=np.concatenate([table.split, moved]),
    )


def _problems(metadata: ModelMetadata, count: int, seed: int) -> Iterator[MMShape]:
    """Of what the model covers, by the law of real workloads, some with round sizes."""
    most = int(min(metadata.ranges[name][1] for name in "MNK"))
    kinds = list(itertools.product(metadata.covers, _MULTIPLES))
    each = max(count // len(kinds), 1)
    for number, (covered, multiple) in enumerate(kinds):
        op, _, precision = covered.partition("/")
        source = ShapeSource(
            LogNormal(),
            ops=(op,),
            dtypes=("float32" if precision == "tf32" else precision,),
            layouts=("nn", "nt", "tn"),
            high=max(most, 16, multiple),
            multiple=multiple,
            tf32=precision == "tf32",
        )
        yield from source.draw(each, seed + number)
