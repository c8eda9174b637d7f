"""Add timings of missing candidates to a data set.

    python workflows/adopt_missing.py --dataset validation/full-1.parquet --again again/

`again` is the output of `collect_matmul.py missing`. All kernels of a small problem are sometimes a
few percent faster or slower together in another run. ATen was timed in both runs, so the new times
are scaled by ATen's ratio. Nothing is written with `--dry`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pyarrow as pa

from torch_diode.files.datasets import read_dataset, write_dataset
from torch_diode.types.candidate import ATEN
from torch_diode.types.dataset import Dataset
from torch_diode.types.problem import MMShape


def adopted(before: Dataset, again: Dataset) -> Dataset:
    """The old timings and, where both runs timed ATen, the scaled new ones of other candidates."""
    old, new = vendor_times(before), vendor_times(again)
    problems = [again.problem(int(row)) for row in again.problems.first]
    factors = np.array([old[p] / new[p] if p in old and p in new else np.nan for p in problems])
    factor = factors[again.problems.ids]
    keep = np.isfinite(factor) & (again.values("block_k") > 0)
    scaled = (again.values("time_us") * factor)[keep].astype(np.float32)
    times = pa.array(scaled, from_pandas=True)  # what cannot run has no time
    added = again.take(keep)
    place = added.table.schema.get_field_index("time_us")
    table = added.table.set_column(place, added.table.schema.field(place), times)
    return Dataset.merge([before, Dataset(table, added.provenance)], "first")


def vendor_times(dataset: Dataset) -> dict[MMShape, float]:
    """ATen's time per problem."""
    codes, names = dataset.codes("template")
    times = dataset.values("time_us")
    rows = np.flatnonzero(codes == list(names).index(ATEN))
    return {dataset.problem(int(row)): float(times[row]) for row in rows}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dataset", type=Path, required=True, help="the data set, a file")
    parser.add_argument("--again", type=Path, required=True, help="output of `missing`")
    parser.add_argument("--dry", action="store_true", help="only print")
    given = parser.parse_args()
    before, again = read_dataset(given.dataset), read_dataset(given.again)
    after = adopted(before, again)
    print(f"{len(before):,} timings, now {len(after):,}; {len(after.problems):,} problems")
    if not given.dry:
        write_dataset(after, given.dataset)


if __name__ == "__main__":
    main()
