"""Features and targets of a whole dataset, for training and evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from torch_diode.model.evaluation.regret import ONCE, standard_errors
from torch_diode.model.features.cpu import cpu_features
from torch_diode.model.features.extractor import config_arrays, joint_features, problem_features
from torch_diode.model.features.names import CONFIG_NAMES, JOINT_NAMES
from torch_diode.model.features.problem_arrays import Floats, ProblemArrays, usable_rows
from torch_diode.model.features.roofline import roofline_us
from torch_diode.model.features.vendor import split_features, vendor_features
from torch_diode.types.candidate import ATEN, DECOMPOSE_K
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.errors import EmptySelectionError
from torch_diode.types.grouping import column_numbers, number_rows
from torch_diode.types.problem import MMShape
from torch_diode.types.schema import CANDIDATE_NAMES

if TYPE_CHECKING:
    from torch_diode.types.dataset import Dataset
    from torch_diode.types.hardware import Hardware

Ids = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_CHUNK = 1 << 18
_BETWEEN_RUNS = 0.004
"""Standard error of a time between runs, however often it is measured in each."""
_BETWEEN_CPU_RUNS = 0.01
"""The same on a CPU, where it depends on the pages that operands lie in."""
SEVERAL = 3
"""Of fewer samples than this, taken of what is far from the fastest, one disturbed moment of a CPU
may be a multiple of the time: such a time has the noise `ONCE`."""
_LEAST_NOISE = 1e-4


@dataclass(frozen=True, eq=False)
class FeatureTable:
    """Features and targets of a dataset's usable rows: those with a time, of a library, of a split
    of K or of a known template. A candidate measured several times has one row. Problems have
    arrays of their own, which `group` points into."""

    problem: Floats
    """Problem features, one row per problem."""
    vendor: Floats
    roofline: Floats
    arrays: ProblemArrays
    group: Ids
    """Problem of each row."""
    rows: Ids
    """Position of each row in the dataset."""
    config: Floats
    """Config and joint features, one row per timing; zero for candidates without a config."""
    is_aten: Mask
    time_us: Floats
    noise: Floats
    """Standard error of each time, as a fraction of it."""
    splits: Floats
    """Features of the splits of K that were timed, of all problems together."""
    split: Ids
    """Position of each row in `splits`; -1 for other candidates."""
    label: Ids
    """On a CPU, the position of each row's candidate in `labels`."""
    labels: tuple[str, ...] = ()
    """On a CPU, the distinct candidates: a model has an output for each."""

    @property
    def is_config(self) -> Mask:
        """Rows that are a template with a config."""
        return np.asarray(~self.is_aten & (self.split < 0))

    @property
    def target(self) -> Floats:
        """Training target: log(time / roofline)."""
        return np.asarray(np.log(self.time_us / self.roofline[self.group]), np.float32)

    @property
    def has_choice(self) -> Mask:
        """Problems with several candidates."""
        return np.bincount(self.group, minlength=len(self.problem)) > 1

    def with_a_choice(self) -> FeatureTable:
        """Keep the problems with several candidates: a single one tests no ranking."""
        return self.take(self.has_choice)

    def take(self, problems: Mask) -> FeatureTable:
        """Keep the rows of these problems; problems keep their numbers and their arrays."""
        return self.take_rows(problems[self.group])

    def take_rows(self, keep: Mask) -> FeatureTable:
        """Keep some rows; problems keep their numbers and their arrays."""
        names = ("group", "rows", "config", "is_aten", "time_us", "noise", "split", "label")
        return replace(self, **{name: getattr(self, name)[keep] for name in names})

    def best_times(self, rows: Mask | slice = slice(None)) -> npt.NDArray[np.float64]:
        """Best time of each problem among these rows; infinite for a problem without any."""
        best = np.full(len(self.problem), np.inf)
        np.minimum.at(best, self.group[rows], self.time_us[rows])
        return best

    def subset_regrets(self, chosen: Mask) -> npt.NDArray[np.float64]:
        """Regret of perfect benchmarking of the chosen rows, by problem number; NaN for a problem
        with none of them."""
        best = self.best_times(chosen)
        best[np.isinf(best)] = np.nan
        return np.asarray(best / self.best_times())


def feature_table(dataset: Dataset, hardware: Hardware) -> FeatureTable:
    """Compute the features of a dataset, by the same code that serves a compile."""
    rows = usable_rows(dataset)
    if not len(rows):
        raise EmptySelectionError(
            "dataset: got no timing of ATen or a known template; expected some; collect again"
        )
    time = dataset.values("time_us")[rows]
    merged = _merge_repeats(dataset, _MergedTimings(rows, time, _noise(dataset, rows, time)))
    rows = merged.rows
    candidates = dataset.candidates(rows)
    problems = _Problems(ProblemArrays.of_dataset(dataset), *_kinds(dataset))
    table = _table(problems, candidates, dataset.problems.ids[rows], hardware)
    return replace(
        table,
        rows=rows,
        time_us=merged.time_us.astype(np.float32),
        noise=merged.noise.astype(np.float32),
    )


def unmeasured_table(
    problems: Sequence[MMShape], candidates: Sequence[Candidates], hardware: Hardware
) -> FeatureTable:
    """Features of some candidates of each problem, with times of 1 and no noise, for a model's
    predictions; they belong to no dataset."""
    arrays = ProblemArrays.concat([ProblemArrays.of(problem) for problem in problems])
    seen: dict[MMShape, int] = {}
    numbers = [seen.setdefault(replace(p, M=1, N=1, K=1, B=1), len(seen)) for p in problems]
    group = np.repeat(np.arange(len(problems)), [len(some) for some in candidates])
    kinds = _Problems(arrays, list(seen), np.array(numbers, np.int64))
    return _table(kinds, Candidates.concat(candidates), group, hardware)


class _Problems(NamedTuple):
    """Problems, the distinct kinds among them, and the kind of each."""

    arrays: ProblemArrays
    kinds: list[MMShape]
    kind: Ids


class _MergedTimings(NamedTuple):
    """Rows of a dataset, their times, and each time's standard error as a fraction of it."""

    rows: Ids
    time_us: npt.NDArray[np.floating]
    noise: npt.NDArray[np.floating]


def _merge_repeats(dataset: Dataset, timings: _MergedTimings) -> _MergedTimings:
    """Merge repeated timings of a candidate, whatever their method and torch release: the first of
    its rows, with the mean of its log times, weighted by their certainty."""
    rows = timings.rows
    keys = [column_numbers(dataset.table.column(name))[rows] for name in CANDIDATE_NAMES]
    ids = number_rows([dataset.problems.ids[rows], *keys], len(rows))
    count = int(ids.max()) + 1 if len(ids) else 0
    if count == len(ids):
        return timings
    first = np.empty(count, np.int64)
    first[ids[::-1]] = np.arange(len(ids))[::-1]
    weight = 1 / np.square(np.maximum(timings.noise.astype(np.float64), _LEAST_NOISE))
    total = np.bincount(ids, weight)
    mean = np.bincount(ids, weight * np.log(timings.time_us.astype(np.float64))) / total
    return _MergedTimings(rows[first], np.exp(mean), 1 / np.sqrt(total))


def _noise(dataset: Dataset, rows: Ids, time: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
    spread, repeats = (dataset.values(name)[rows] for name in ("spread", "repeats"))
    noise = np.hypot(standard_errors(spread, repeats, time), _BETWEEN_RUNS)
    on_cpu = dataset.values("threads")[rows] > 0
    noise[on_cpu] = np.hypot(noise[on_cpu], _BETWEEN_CPU_RUNS)
    noise[on_cpu & (repeats < SEVERAL)] = ONCE
    return noise


def _table(
    problems: _Problems, candidates: Candidates, group: Ids, hardware: Hardware
) -> FeatureTable:
    if hardware.kind == "cpu":
        return _library_table(problems.arrays, candidates, group, hardware)
    arrays = problems.arrays
    is_split = candidates.is_template(DECOMPOSE_K)
    splits = candidates.fields["split_k"][is_split].astype(np.float32)
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
        splits=split_features(arrays.take(group[is_split]), splits, hardware),
        split=np.where(is_split, np.cumsum(is_split) - 1, -1),
        label=np.full(len(group), -1),
    )


def _library_table(
    arrays: ProblemArrays, candidates: Candidates, group: Ids, hardware: Hardware
) -> FeatureTable:
    """On a CPU: problem features only, and the candidate of each row as a label."""
    names = [str(candidate) for candidate in candidates]
    labels = tuple(sorted(set(names)))
    number = {name: position for position, name in enumerate(labels)}
    count = len(group)
    return FeatureTable(
        problem=cpu_features(arrays, hardware),
        vendor=np.zeros((len(arrays), 0), np.float32),
        roofline=np.asarray(roofline_us(arrays, hardware), np.float32),
        arrays=arrays,
        group=group,
        rows=np.full(count, -1),
        config=np.zeros((count, 0), np.float32),
        is_aten=candidates.is_template(ATEN),
        time_us=np.ones(count, np.float32),
        noise=np.zeros(count, np.float32),
        splits=np.zeros((0, 0), np.float32),
        split=np.full(count, -1),
        label=np.array([number[name] for name in names], np.int64),
        labels=labels,
    )


def _row_features(
    problems: _Problems, candidates: Candidates, group: Ids, hardware: Hardware
) -> Floats:
    """Config and joint features, computed by kind of problem, on which resources depend."""
    out = np.zeros((len(group), len(CONFIG_NAMES) + len(JOINT_NAMES)), np.float32)
    kind_of_row = problems.kind[group]
    has_config = candidates.fields["block_m"] > 0
    for number, kind in enumerate(problems.kinds):
        members = np.flatnonzero((kind_of_row == number) & has_config)
        for start in range(0, len(members), _CHUNK):
            part = members[start : start + _CHUNK]
            configs = config_arrays(candidates.take(part), kind, hardware)
            joint = joint_features(problems.arrays.take(group[part]), configs, hardware)
            out[part] = np.concatenate([configs.features, joint], axis=1)
    return out


def _kinds(dataset: Dataset) -> tuple[list[MMShape], Ids]:
    """List the distinct kinds of problem, and number each problem's."""
    seen: dict[MMShape, int] = {}
    numbers = np.empty(len(dataset.problems), np.int64)
    texts = {name: dataset.codes(name) for name in ("op", "dtype", "out_dtype", "bias")}
    flags = {name: dataset.values(name) for name in ("transpose_a", "transpose_b", "tf32")}
    for number, row in enumerate(dataset.problems.first.tolist()):
        text = {name: words[codes[row]] for name, (codes, words) in texts.items()}
        flag: dict[str, Any] = {name: bool(values[row]) for name, values in flags.items()}
        kind = MMShape(M=1, N=1, K=1, **text, **flag)
        numbers[number] = seen.setdefault(kind, len(seen))
    return list(seen), numbers
