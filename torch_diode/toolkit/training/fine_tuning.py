"""Training further: the trained model a run starts from, and what it is to keep of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from torch_diode.cli.console.output import print_line
from torch_diode.model.checkpoint import load_weights, network_of
from torch_diode.model.features.problem_arrays import Floats
from torch_diode.model.metadata import SWEEP, ModelMetadata
from torch_diode.model.training.trainer import SplitTables
from torch_diode.toolkit.training.replay import joined, replay
from torch_diode.types.hardware import Hardware

_REHEARSED, _REHEARSED_SHARE = (2000, 6000), 3
"""Drawn problems beside the user's: least, most, and how many for each of the user's."""


@dataclass(frozen=True, eq=False)
class Start:
    """The trained model a run starts from."""

    metadata: ModelMetadata
    weights: dict[str, Floats]
    name: str


def start_from(path: str) -> Start:
    """The model of a file."""
    return Start(*load_weights(Path(path)), path)


def with_replay(
    parts: SplitTables, start: Start | None, hardware: Hardware, seed: int
) -> SplitTables:
    """With a model to start from, the training part and what the model itself says of others."""
    if start is None:
        return parts
    print_line(f"Starting from {start.name}, trained on {start.metadata.hardware}")
    if start.metadata.hardware != hardware.name:
        return parts
    low, high = _REHEARSED
    count = min(max(_REHEARSED_SHARE * len(np.unique(parts.train.group)), low), high)
    network = network_of(start.metadata, start.weights)
    drawn = replay(network, start.metadata, hardware, count, seed)
    return replace(parts, train=joined(parts.train, drawn))


def continued(metadata: ModelMetadata, start: Start) -> ModelMetadata:
    """A model trained further keeps what it knew, where it is of the same chip."""
    before = start.metadata
    learnt = (data.options.get("methods", [SWEEP]) for data in (before, metadata))
    options = {
        **metadata.options,
        "init_from": before.dataset_digest,
        "methods": sorted({method for methods in learnt for method in methods}),
    }
    if before.hardware != metadata.hardware:
        return replace(metadata, options=options)
    ranges = {
        name: [min(ends[0], metadata.ranges[name][0]), max(ends[1], metadata.ranges[name][1])]
        for name, ends in before.ranges.items()
        if name in metadata.ranges
    }
    return replace(
        metadata,
        covers=list(dict.fromkeys([*before.covers, *metadata.covers])),
        ranges=ranges,
        torch=sorted({*before.torch, *metadata.torch}),
        triton=sorted({*before.triton, *metadata.triton}),
        options=options,
    )
