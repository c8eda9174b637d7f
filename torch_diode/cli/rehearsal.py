"""What keeps a model from forgetting while it is trained on a user's few problems.

Problems are drawn all over the range the model was trained on, and its own predictions for them
are mixed in as if they had been measured: where the user's data say nothing, it stays what it was.
No data of the first training is needed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import fields, replace

import numpy as np

from torch_diode.candidates import candidate_space
from torch_diode.collection.shape_sources import LogNormal, ShapeSource
from torch_diode.model.feature_table import FeatureTable, feature_table
from torch_diode.model.metadata import ModelMetadata
from torch_diode.model.networks import TimingNetwork
from torch_diode.model.problem_arrays import ProblemArrays
from torch_diode.model.scoring import predict_times
from torch_diode.types.candidate import ATEN
from torch_diode.types.candidates import NUMBER_FIELDS
from torch_diode.types.dataset import Dataset
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape

_CONFIGS = 100
"""Drawn of each problem's candidates."""
_MULTIPLES = (1, 8, 64)


def rehearsal(
    network: TimingNetwork, metadata: ModelMetadata, hardware: Hardware, count: int, seed: int
) -> FeatureTable:
    """About `count` drawn problems with the times a network predicts for them."""
    rng = np.random.default_rng(seed)
    table = drawn_table(list(_problems(metadata, count, seed)), hardware, rng, _CONFIGS)
    return replace(table, time_us=predict_times(network, table))


def joined(table: FeatureTable, other: FeatureTable) -> FeatureTable:
    """Both tables' rows and problems; the second one's stand in no dataset."""
    first = len(table.problem)
    arrays = ProblemArrays(
        **{
            f.name: np.concatenate([getattr(table.arrays, f.name), getattr(other.arrays, f.name)])
            for f in fields(ProblemArrays)
        }
    )
    names = ("problem", "vendor", "roofline", "config", "is_aten", "time_us", "noise", "splits")
    together = {
        name: np.concatenate([getattr(table, name), getattr(other, name)]) for name in names
    }
    moved = np.where(other.split < 0, -1, other.split + len(table.splits))
    return FeatureTable(
        **together,
        arrays=arrays,
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
            high=max(most, 16),
            multiple=multiple,
            tf32=precision == "tf32",
        )
        yield from source.draw(each, seed + number)


def drawn_table(
    problems: list[MMShape], hardware: Hardware, rng: np.random.Generator, configs: int
) -> FeatureTable:
    """About so many candidates of each problem, ATen among them, with times yet to be told."""
    columns: dict[str, list[object]] = {}
    for problem in problems:
        space = candidate_space(problem, hardware)
        chosen = rng.random(len(space)) < configs / len(space)
        space = space.take(chosen | space.is_template(ATEN))
        row = {"hardware": hardware.name, **problem.to_dict()}
        for name, value in row.items():
            columns.setdefault(name, []).extend([value] * len(space))
        templates = [space.templates[code] for code in space.template.tolist()]
        columns.setdefault("template", []).extend(templates)
        for name in NUMBER_FIELDS:
            columns.setdefault(name, []).extend(space.fields[name].tolist())
    count = len(columns["template"])
    dataset = Dataset.from_columns({**columns, "time_us": np.ones(count, np.float32)})
    return feature_table(dataset, hardware)
