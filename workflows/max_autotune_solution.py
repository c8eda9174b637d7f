"""Makes a solution for `validate-max-autotune` of datasets: per op, the configs that win most.

`python workflows/max_autotune_solution.py validation.parquet --output solution.json --configs 20`
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from winning_configs import winners

from torch_diode.cli.console.output import note_progress
from torch_diode.files.json import write_json
from torch_diode.toolkit.datasets import read_all
from torch_diode.types.dataset import Dataset
from torch_diode.types.solution import Solution


def solution(dataset: Dataset, configs: int) -> dict[str, Any]:
    """The configs that are the fastest of the most problems of each op, at most so many."""
    return {
        op: {"config": [config.to_dict() for config, _ in counted[:configs]]}
        for op, counted in winners(dataset).items()
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("datasets", nargs="+", type=Path, help="dataset files or directories")
    parser.add_argument("--output", type=Path, default=Path("max_autotune_solution.json"))
    parser.add_argument("--configs", type=int, default=20, help="configs per op, at most")
    given = parser.parse_args(arguments)
    parts = [read_all(path, progress=note_progress) for path in given.datasets]
    data = solution(Dataset.merge(parts, "last"), given.configs)
    count = len(Solution.from_dict(data).configs)
    write_json(given.output, data, 4)
    print(f"{given.output}: {count} configs of {', '.join(data)}")


if __name__ == "__main__":
    main()
