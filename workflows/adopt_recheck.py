"""Merge rechecked times into a validation set, and report how well two runs agree.

    python workflows/adopt_recheck.py --dataset validation/full-1.parquet --again again/

A candidate timed in both runs gets the geometric mean of its two times, weighted by repetitions, at
most 15: beyond that the difference between runs dominates the scatter of samples. Other candidates
keep their times. Nothing is written with `--dry`.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from torch_diode.files.datasets import read_dataset, write_dataset
from torch_diode.types.candidate import Candidate
from torch_diode.types.dataset import Dataset
from torch_diode.types.problem import MMShape
from torch_diode.types.timing import Timing

MOST_WEIGHT = 15
STEPS = (0.02, 0.05, 0.1, 0.2)

Pair = tuple[Timing, Timing]


def pairs(before: Dataset, again: Dataset) -> Iterator[Pair]:
    """The old and the new timing of every candidate that has both."""
    rows: dict[tuple[MMShape, Candidate], Timing] = {
        (t.problem, t.candidate): t for t in before if t.time_us
    }
    for new in again:
        old = rows.get((new.problem, new.candidate))
        if old is not None and new.time_us:
            yield old, new


def combined(old: Timing, new: Timing) -> Timing:
    """One timing of two runs."""
    assert old.time_us
    assert new.time_us
    counts = np.minimum([old.repeats, new.repeats], MOST_WEIGHT)
    weights = counts / counts.sum()
    time = np.exp(weights @ np.log([old.time_us, new.time_us]))
    spread = weights @ [old.spread or 0.0, new.spread or 0.0]
    repeats = old.repeats + new.repeats
    return replace(
        new, time_us=round(float(time), 4), spread=round(float(spread), 5), repeats=repeats
    )


def behind(both: list[Pair]) -> npt.NDArray[np.float64]:
    """Per problem, regret of the first run's best by the second run: the loss of exhaustive
    autotuning that times everything once."""
    problems: Mapping[MMShape, list[Pair]] = defaultdict(list)
    for old, new in both:
        problems[old.problem].append((old, new))
    found = []
    for members in problems.values():
        first, second = (np.array([pair[i].time_us or np.inf for pair in members]) for i in (0, 1))
        found.append(second[first.argmin()] / second.min())
    return np.array(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dataset", type=Path, required=True, help="the validation set, a file")
    parser.add_argument("--again", type=Path, required=True, help="output of recheck")
    parser.add_argument("--dry", action="store_true", help="only print")
    given = parser.parse_args()
    before, again = read_dataset(given.dataset), read_dataset(given.again)
    both = list(pairs(before, again))
    changes = np.log([(new.time_us or 1) / (old.time_us or 1) for old, new in both])
    lost = behind(both)
    print(f"{len(both):,} timings of {len(lost):,} of {len(before.problems):,} problems")
    print(f"new over old: median {np.exp(np.median(changes)):.4f}, spread {changes.std():.4f}")
    for step in STEPS:
        lower, higher = (changes < -step).mean(), (changes > step).mean()
        print(f"  by more than {step:4.0%}: {lower:6.2%} lower, {higher:6.2%} higher")
    print(
        f"the first run's best by the second: {np.exp(np.log(lost).mean()):.4f} behind the "
        f"second's, {np.percentile(lost, 99):.3f} at p99"
    )
    if not given.dry:
        new = Dataset.from_timings((combined(*pair) for pair in both), again.provenance)
        write_dataset(Dataset.merge([before, new], "last"), given.dataset)


if __name__ == "__main__":
    main()
