"""Counts which Triton configs win: of how many problems each is the fastest config, per op.

`python workflows/winning_configs.py validation.parquet --top 10`
"""

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from torch_diode.cli.console.output import note_progress, print_table
from torch_diode.toolkit.datasets import read_all
from torch_diode.types.candidate import TritonGEMMConfig
from torch_diode.types.dataset import Dataset

Counted = list[tuple[TritonGEMMConfig, int]]


def winners(dataset: Dataset) -> dict[str, Counted]:
    """By op, the configs that are the fastest of some problem, and of how many."""
    codes, names = dataset.codes("template")
    triton = np.isin(codes, [i for i, name in enumerate(names) if name.startswith("triton::")])
    timings = dataset.take(triton)
    counts: dict[str, Counter[TritonGEMMConfig]] = {}
    for timing in timings.take(timings.problems.fastest(timings.values("time_us"))):
        config = timing.candidate.triton
        assert config is not None
        counts.setdefault(timing.problem.op, Counter())[config] += 1
    return {op: counts[op].most_common() for op in sorted(counts)}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("datasets", nargs="+", type=Path, help="dataset files or directories")
    parser.add_argument("--top", type=int, default=10, help="configs to list per op")
    given = parser.parse_args(arguments)
    parts = [read_all(path, progress=note_progress) for path in given.datasets]
    rows = [
        (op, count, f"{count / sum(n for _, n in counted):.1%}", *config.to_dict().values())
        for op, counted in winners(Dataset.merge(parts, "last")).items()
        for config, count in counted[: given.top]
    ]
    blocks = ("block_m", "block_n", "block_k", "group_m", "num_stages", "num_warps")
    print_table(("op", "wins", "share", *blocks), rows, right="l" + "r" * 8)


if __name__ == "__main__":
    main()
