"""Put rechecked times into a validation set, and tell what had been wrong.

    python workflows/adopt_recheck.py --dataset validation/full-1.parquet --again again/

Where a candidate was timed again, the new time stands: the contenders of a problem were all timed
together, so no old time of one is held against a new time of another. Problems of which fewer than
half of the old contenders were timed again keep their old times. Nothing is written with `--dry`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import numpy.typing as npt

from torch_diode.files.datasets import read_dataset, write_dataset
from torch_diode.types.dataset import Dataset

NEAR = 0.25
"""What was within this of the best counts as a contender."""
STEPS = (0.02, 0.05, 0.1, 0.2)


def usable(before: Dataset, again: Dataset) -> npt.NDArray[np.bool_]:
    """Which rows of the recheck are of problems whose contenders were timed again."""
    old = {before.problem(int(row)): number for number, row in enumerate(before.problems.first)}
    times, ids = before.values("time_us"), before.problems.ids
    best = np.full(len(before.problems), np.inf)
    np.minimum.at(best, ids, np.where(np.isnan(times), np.inf, times))
    contenders = np.bincount(ids, times <= (1 + NEAR) * best[ids], len(best))
    kept = np.zeros(len(again.problems), bool)
    counts = np.bincount(again.problems.ids, minlength=len(kept))
    for number, row in enumerate(again.problems.first):
        place = old.get(again.problem(int(row)))
        kept[number] = place is not None and counts[number] >= contenders[place] / 2
    return np.asarray(kept[again.problems.ids])


def changes(before: Dataset, again: Dataset) -> npt.NDArray[np.float64]:
    """log(new time / old time) of every candidate that has both."""
    old = {(t.problem, t.candidate): t.time_us for t in before if t.status == "ok"}
    pairs = [(t.time_us, old.get((t.problem, t.candidate))) for t in again if t.status == "ok"]
    return np.log([new / was for new, was in pairs if new and was])


def main() -> None:
    """Compare, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dataset", type=Path, required=True, help="the validation set, a file")
    parser.add_argument("--again", type=Path, required=True, help="what recheck wrote")
    parser.add_argument("--dry", action="store_true", help="only tell")
    given = parser.parse_args()
    before, again = read_dataset(given.dataset), read_dataset(given.again)
    again = again.take(usable(before, again))
    found = changes(before, again)
    print(f"{len(again):,} timings of {len(again.problems):,} of {len(before.problems):,} problems")
    print(f"new over old: median {np.exp(np.median(found)):.4f}, spread {found.std():.4f}")
    for step in STEPS:
        lower, higher = (found < -step).mean(), (found > step).mean()
        print(f"  by more than {step:4.0%}: {lower:6.2%} lower, {higher:6.2%} higher")
    if not given.dry:
        write_dataset(Dataset.merge([before, again], "last"), given.dataset)


if __name__ == "__main__":
    main()
