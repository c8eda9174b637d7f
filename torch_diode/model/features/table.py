"""A whole dataset as features: what training and evaluation work on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from torch_diode.model.evaluation.regret import standard_errors
from torch_diode.model.features.extractor import (
    CONFIG_NAMES,
    JOINT_NAMES,
    TEMPLATES,
    ConfigArrays,
    config_arrays,
    joint_features,
    problem_features,
    roofline_us,
)
from torch_diode.model.features.problem_arrays import Floats, ProblemArrays
from torch_diode.model.features.repeats import MergedTimings, merge_repeats
from torch_diode.model.features.vendor import split_features, vendor_features
from torch_diode.types.candidate import ATEN, DECOMPOSE_K
from torch_diode.types.candidate_arrays import NUMBER_FIELDS, Candidates
from torch_diode.types.dataset import Dataset
from torch_diode.types.errors import EmptySelectionError
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape

_CHUNK = 1 << 18
_BETWEEN_RUNS = 0.004
"""What a time differs by from one run to another, however often it is measured in each."""


@dataclass(frozen=True, eq=False)
class FeatureTable:
    """Features and targets of a dataset's usable rows: those with a time, of ATen, of a split of K
    or of a template the features can tell apart; a candidate that was measured several times has
    one row. Problems stand in their own arrays, not once a row."""

    problem: Floats
    """Problem and vendor features, one row a problem."""
    vendor: Floats
    roofline: Floats
    arrays: ProblemArrays
    group: npt.NDArray[np.int64]
    """For each row its problem."""
    rows: npt.NDArray[np.int64]
    """For each row where it stands in the dataset."""
    config: Floats
    """Config and joint features, one row a timing; zero for what has no config."""
    is_aten: npt.NDArray[np.bool_]
    time_us: Floats
    noise: Floats
    """The standard error of each time, as a fraction of it."""
    splits: Floats
    """Features of the splits of K that were timed, of all problems together."""
    split: npt.NDArray[np.int64]
    """For each row its place in `splits`; -1 for what is no split of K."""

    @property
    def is_config(self) -> npt.NDArray[np.bool_]:
        """The rows that are a template with a config."""
        return np.asarray(~self.is_aten & (self.split < 0))

    @property
    def target(self) -> Floats:
        """What a model learns: log(time / roofline)."""
        return np.asarray(np.log(self.time_us / self.roofline[self.group]), np.float32)

    def with_a_choice(self) -> FeatureTable:
        """Those problems alone: a single candidate teaches a model, and tests no ranking."""
        return self.take(self.has_choice)

    @property
    def has_choice(self) -> npt.NDArray[np.bool_]:
        """The problems with several candidates."""
        return np.bincount(self.group, minlength=len(self.problem)) > 1

    def take(self, problems: npt.NDArray[np.bool_]) -> FeatureTable:
        """The rows of these problems. Problems keep their numbers and their arrays."""
        keep = problems[self.group]
        names = ("group", "rows", "config", "is_aten", "time_us", "noise", "split")
        return replace(self, **{name: getattr(self, name)[keep] for name in names})


def feature_table(dataset: Dataset, hardware: Hardware) -> FeatureTable:
    """Features of a dataset, by the same code that serves a compile."""
    time = dataset.values("time_us")
    template, names = dataset.codes("template")
    rows = usable_rows(dataset)
    if not len(rows):
        raise EmptySelectionError(
            "dataset: got no timing of ATen or a known template; expected some; collect again"
        )
    measured = merge_repeats(
        dataset, MergedTimings(rows, time[rows], _noise(dataset, rows, time[rows]))
    )
    rows = measured.rows
    fields = {name: dataset.values(name)[rows].astype(np.int32) for name in NUMBER_FIELDS}
    candidates = Candidates(tuple(names), template[rows].astype(np.int32), fields)
    problems = _Problems(ProblemArrays.of_dataset(dataset), *_kinds(dataset))
    table = _table(problems, candidates, dataset.problems.ids[rows], hardware)
    return replace(
        table,
        rows=rows,
        time_us=measured.time_us.astype(np.float32),
        noise=measured.noise.astype(np.float32),
    )


def usable_rows(dataset: Dataset) -> npt.NDArray[np.int64]:
    """The rows that have a time and are of something the features can tell apart."""
    time = dataset.values("time_us")
    template, names = dataset.codes("template")
    known = [number for number, name in enumerate(names) if name in (ATEN, DECOMPOSE_K, *TEMPLATES)]
    return np.flatnonzero(np.isfinite(time) & (time > 0) & np.isin(template, known))


def unmeasured_table(
    problems: Sequence[MMShape], candidates: Sequence[Candidates], hardware: Hardware
) -> FeatureTable:
    """Features of some candidates of each problem, with times of 1 and no noise: for what a model
    says of them. They stand in no dataset."""
    arrays = ProblemArrays.joined([ProblemArrays.of(problem) for problem in problems])
    seen: dict[MMShape, int] = {}
    numbers = [seen.setdefault(replace(p, M=1, N=1, K=1, B=1), len(seen)) for p in problems]
    group = np.repeat(np.arange(len(problems)), [len(some) for some in candidates])
    found = _Problems(arrays, list(seen), np.array(numbers, np.int64))
    return _table(found, Candidates.concat(candidates), group, hardware)


class _Problems(NamedTuple):
    """Problems, the distinct kinds among them, and each one's."""

    arrays: ProblemArrays
    kinds: list[MMShape]
    kind: npt.NDArray[np.int64]


def _table(
    problems: _Problems, candidates: Candidates, group: npt.NDArray[np.int64], hardware: Hardware
) -> FeatureTable:
    arrays = problems.arrays
    parted = candidates.is_template(DECOMPOSE_K)
    splits = candidates.fields["split_k"][parted].astype(np.float32)
    return FeatureTable(
        problem=problem_features(arrays, hardware),
        vendor=vendor_features(arrays, hardware),
        roofline=roofline_us(arrays, hardware),
        arrays=arrays,
        group=group,
        rows=np.full(len(group), -1),
        config=_row_features(problems, candidates, group, hardware),
        is_aten=candidates.is_template(ATEN),
        time_us=np.ones(len(group), np.float32),
        noise=np.zeros(len(group), np.float32),
        splits=split_features(arrays.take(group[parted]), splits, hardware),
        split=np.where(parted, np.cumsum(parted) - 1, -1),
    )


def _noise(
    dataset: Dataset, rows: npt.NDArray[np.int64], time: npt.NDArray[np.floating]
) -> npt.NDArray[np.float64]:
    spread, repeats = (dataset.values(name)[rows] for name in ("spread", "repeats"))
    return np.hypot(standard_errors(spread, repeats, time), _BETWEEN_RUNS)


def _row_features(
    problems: _Problems, candidates: Candidates, group: npt.NDArray[np.int64], hardware: Hardware
) -> Floats:
    """Rows of one kind of problem together, since resources depend on the kind."""
    out = np.zeros((len(group), len(CONFIG_NAMES) + len(JOINT_NAMES)), np.float32)
    kind_of_row = problems.kind[group]
    has_config = candidates.fields["block_m"] > 0
    for number, kind in enumerate(problems.kinds):
        members = np.flatnonzero((kind_of_row == number) & has_config)
        for start in range(0, len(members), _CHUNK):
            part = members[start : start + _CHUNK]
            configs = config_arrays(candidates.take(part), kind, hardware)
            out[part] = _both(problems.arrays.take(group[part]), configs, hardware)
    return out


def _both(problems: ProblemArrays, configs: ConfigArrays, hardware: Hardware) -> Floats:
    return np.concatenate([configs.features, joint_features(problems, configs, hardware)], axis=1)


def _kinds(dataset: Dataset) -> tuple[list[MMShape], npt.NDArray[np.int64]]:
    """The distinct kinds of problem, and each problem's."""
    seen: dict[MMShape, int] = {}
    numbers = np.empty(len(dataset.problems), np.int64)
    names = ("op", "dtype", "out_dtype", "bias")
    texts = {name: dataset.codes(name) for name in names}
    flags = {name: dataset.values(name) for name in ("transpose_a", "transpose_b", "tf32")}
    for number, row in enumerate(dataset.problems.first.tolist()):
        text = {name: words[codes[row]] for name, (codes, words) in texts.items()}
        flag: dict[str, Any] = {name: bool(values[row]) for name, values in flags.items()}
        kind = MMShape(M=1, N=1, K=1, **text, **flag)
        numbers[number] = seen.setdefault(kind, len(seen))
    return list(seen), numbers
