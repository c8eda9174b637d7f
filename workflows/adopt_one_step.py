"""Put timings of kernels without a loop over K where those with one were.

    python workflows/adopt_one_step.py --dataset validation/full-1.parquet --again again/
    python workflows/adopt_one_step.py --dataset train/sweep-1.parquet

`again` is what `collect_matmul.py one-step` wrote: where blocks were timed again on a problem, the
old timings of those blocks go, whatever their stages, and the new one stands. Old ones that were
not timed again stay: they are far from the best. Without `--again` all of them go. Nothing is
written with `--dry`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
from _collect_tasks import without_stages

from torch_diode.files.datasets import read_dataset, write_dataset
from torch_diode.types.candidate import Candidate
from torch_diode.types.dataset import Dataset
from torch_diode.types.problem import MMShape

Key = tuple[MMShape, Candidate]


def keys(dataset: Dataset) -> Iterator[Key]:
    """Problem and kernel of each timing: stages tell kernels apart only where something loops."""
    for timing in dataset:
        yield timing.problem, without_stages(timing.candidate)


def adopted(before: Dataset, again: Dataset | None) -> Dataset:
    """The old timings that stay, and the new ones."""
    short = without_a_loop(before)
    if again is None:
        return before.take(~short)
    again = again.take(without_a_loop(again))
    timed = set(keys(again))
    rows = np.flatnonzero(short)
    stale = [key in timed for key in keys(before.take(short))]
    keep = np.ones(len(before), bool)
    keep[rows[stale]] = False
    return Dataset.merge([before.take(keep), again])


def without_a_loop(dataset: Dataset) -> npt.NDArray[np.bool_]:
    """Which timings are of a Triton config whose blocks are as long as K."""
    blocks = dataset.values("block_k")
    return np.asarray((blocks > 0) & (blocks >= dataset.values("K")))


def main() -> None:
    """Replace, tell, write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dataset", type=Path, required=True, help="the data set, a file")
    parser.add_argument("--again", type=Path, help="what one-step wrote")
    parser.add_argument("--dry", action="store_true", help="only tell")
    given = parser.parse_args()
    before = read_dataset(given.dataset)
    again = read_dataset(given.again) if given.again else None
    after = adopted(before, again)
    old, new = (int(without_a_loop(d).sum()) for d in (before, after))
    print(f"{len(before):,} timings, {old:,} of kernels without a loop over K")
    print(f"now {len(after):,}, {new:,} of them; {len(after.problems):,} problems")
    if not given.dry:
        write_dataset(after, given.dataset)


if __name__ == "__main__":
    main()
