"""Add a run of `collect_matmul.py train` or `vendor` to the training data as a new file.

    python workflows/adopt_train.py --new new/ --into train/sweep-10.parquet

Problems of other files of the same folder are skipped, so that each problem has its times in one
file. A validation problem is an error: training must not see it. Existing files are never
overwritten, and nothing is written with `--dry`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from _collect_problems import never_trained_on

from torch_diode.collection.shape_sampling import Sizes, sizes_of
from torch_diode.files.datasets import read_dataset, write_dataset
from torch_diode.types.dataset import Dataset
from torch_diode.types.problem import MMShape


def adopted(new: Dataset, known: set[MMShape], held: frozenset[Sizes]) -> Dataset:
    """Timings of new problems; `ValueError` if one is reserved for validation."""
    problems = problems_of(new)
    kept_back = [p for p in problems if sizes_of(p) in held]
    if kept_back:
        raise ValueError(f"{len(kept_back)} problems are for validation, such as {kept_back[0]}")
    fresh = np.array([p not in known for p in problems], bool)
    return new.take(fresh[new.problems.ids])


def problems_of(dataset: Dataset) -> list[MMShape]:
    """Distinct problems."""
    return [dataset.problem(int(row)) for row in dataset.problems.first]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--new", type=Path, required=True, help="folder of the collected run")
    parser.add_argument("--into", type=Path, required=True, help="the file to write")
    parser.add_argument("--dry", action="store_true", help="only print")
    given = parser.parse_args()
    if given.into.exists():
        sys.exit(f"{given.into}: exists already; name a new file")
    others = sorted(given.into.parent.glob("*.parquet"))
    if not others:
        sys.exit(f"{given.into.parent}: got no dataset in it; expected the training data's folder")
    known = {problem for path in others for problem in problems_of(read_dataset(path))}
    new = read_dataset(given.new)
    try:
        after = adopted(new, known, never_trained_on())
    except ValueError as error:
        sys.exit(f"{given.new}: {error}")
    left_out = len(new.problems) - len(after.problems)
    print(f"{len(after):,} timings of {len(after.problems):,} problems; {left_out:,} were known")
    if not len(after):
        sys.exit(f"{given.new}: nothing new in it")
    if not given.dry:
        write_dataset(after, given.into)


if __name__ == "__main__":
    main()
