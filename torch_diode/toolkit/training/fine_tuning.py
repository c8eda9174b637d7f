"""Fine-tuning: the trained model a run starts from, and replay against forgetting.

Replay draws problems all over the range the model was trained on and mixes its own predictions for
them in as if they had been measured: where the user's data has nothing to add, the model stays as
it was. The data of the first training is not needed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from torch_diode.collection.shape_sampling import LogNormal, ShapeSource
from torch_diode.model.checkpoint import load_weights, network_of
from torch_diode.model.evaluation.scoring import predict_times
from torch_diode.model.features.names import CONFIG_NAMES, TEMPLATES
from torch_diode.model.features.problem_arrays import Floats, ProblemArrays
from torch_diode.model.features.table import FeatureTable, unmeasured_table
from torch_diode.model.metadata import SWEEP, ModelMetadata
from torch_diode.model.networks.library_model import LibraryTimingModel
from torch_diode.model.networks.timing_models import TimingNetwork
from torch_diode.model.training.split import SplitTables
from torch_diode.toolkit.progress import Progress, ProgressCallback
from torch_diode.types.candidate import ATEN, DECOMPOSE_K
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import DTYPES, MMShape

_REPLAYED, _REPLAYED_SHARE = (2000, 6000), 3
"""Drawn problems beside the user's: least, most, and the number for each of the user's."""
_CANDIDATES = (48, 48)
"""Candidates of each drawn problem: those the model ranks best, and about so many of the rest."""
_CANDIDATES_ELSEWHERE = (16, 16)
"""The same for another chip, where as many problems are drawn as measured: more would drown what
differs from the first chip."""
_MULTIPLES = (1, 8, 64)
_OWN = [
    place
    for place, name in enumerate(CONFIG_NAMES)
    if name.startswith(("template_", "log2_block_")) or name in ("num_stages", "log2_num_warps")
]
"""Features of a config that do not depend on the problem."""


@dataclass(frozen=True, eq=False)
class InitialModel:
    """The trained model that a run starts from."""

    metadata: ModelMetadata
    weights: dict[str, Floats]
    name: str


def load_initial(path: str) -> InitialModel:
    """Read the model of a file."""
    return InitialModel(*load_weights(Path(path)), path)


def add_replay(
    parts: SplitTables,
    initial: InitialModel | None,
    hardware: Hardware,
    seed: int,
    progress: ProgressCallback,
) -> SplitTables:
    """The training part with replay of the initial model, where there is one of the same
    architecture. If that is of another chip, what was measured here is not replayed."""
    if initial is None:
        return parts
    text = f"Starting from {initial.name}, trained on {initial.metadata.hardware}"
    progress(Progress(message=text))
    if initial.metadata.arch != hardware.arch:
        return parts
    network = network_of(initial.metadata, initial.weights)
    assert not isinstance(network, LibraryTimingModel)
    count = len(np.unique(parts.train.group))
    if initial.metadata.hardware == hardware.name:
        low, high = _REPLAYED
        count = min(max(_REPLAYED_SHARE * count, low), high)
        drawn = replay(network, initial.metadata, hardware, count, seed)
    else:
        drawn = replay(network, initial.metadata, hardware, count, seed, _CANDIDATES_ELSEWHERE)
        drawn = without_measured(drawn, parts.train)
    return replace(parts, train=concat_tables(parts.train, drawn))


def replay(
    network: TimingNetwork,
    metadata: ModelMetadata,
    hardware: Hardware,
    count: int,
    seed: int,
    each: tuple[int, int] = _CANDIDATES,
) -> FeatureTable:
    """About `count` drawn problems, with the times a network predicts for them."""
    from torch_diode.model.training.candidate_sampling import sample_candidates

    problems = list(_problems(metadata, count, seed))
    templates = (ATEN, DECOMPOSE_K, *TEMPLATES)
    candidates = sample_candidates(
        problems, metadata.kind, network, hardware, templates, *each, seed
    )
    table = unmeasured_table(problems, candidates, hardware)
    return replace(table, time_us=predict_times(network, table))


def without_measured(drawn: FeatureTable, measured: FeatureTable) -> FeatureTable:
    """The drawn rows but those of what was measured: ATen and configs of an op and precision."""
    kinds = np.isin(_kinds(drawn), np.unique(_kinds(measured)[measured.group]))[drawn.group]
    known = drawn.is_config & np.isin(_configs(drawn), _configs(measured)) | drawn.is_aten
    return drawn.take_rows(~(kinds & known))


def _kinds(table: FeatureTable) -> npt.NDArray[np.floating]:
    return np.asarray(table.arrays.op * len(DTYPES) + table.arrays.precision)


def _configs(table: FeatureTable) -> npt.NDArray[np.str_]:
    """A text for the config of each row, by the features that are its own."""
    return np.array([str(row) for row in table.config[:, _OWN].round(2).tolist()])


def concat_tables(table: FeatureTable, other: FeatureTable) -> FeatureTable:
    """Both tables' rows and problems; the second one's belong to no dataset."""
    first = len(table.problem)
    names = ("problem", "vendor", "roofline", "config", "is_aten", "time_us", "noise", "splits")
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(table, name), getattr(other, name)]) for name in names
    }
    moved = np.where(other.split < 0, -1, other.split + len(table.splits))
    return FeatureTable(
        **columns,
        arrays=ProblemArrays.concat([table.arrays, other.arrays]),
        group=np.concatenate([table.group, other.group + first]),
        rows=np.concatenate([table.rows, np.full(len(other.rows), -1)]),
        split=np.concatenate([table.split, moved]),
        label=np.concatenate([table.label, other.label]),
    )


def _problems(metadata: ModelMetadata, count: int, seed: int) -> Iterator[MMShape]:
    """Draw problems of everything the model covers, some of them with round sizes."""
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


def merge_metadata(
    metadata: ModelMetadata, initial: InitialModel, worse: Sequence[str] = ()
) -> ModelMetadata:
    """Metadata of a fine-tuned model: on the same architecture it still covers what it covered
    before. One of another chip decides alone only if its own timings allow it and ATen alone is
    better in no slice of the held-out problems (`worse`)."""
    before = initial.metadata
    options = {**metadata.options, "init_from": before.dataset_digest}
    if before.arch != metadata.arch:
        return replace(metadata, options=options)
    if before.hardware == metadata.hardware:
        trained = (data.options.get("methods", [SWEEP]) for data in (before, metadata))
        options["methods"] = sorted({method for methods in trained for method in methods})
        earned = sorted({*before.decides_alone, *metadata.decides_alone})
    else:
        earned = [] if worse else metadata.decides_alone
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
        decides_alone=earned,
        configs={},
    )
