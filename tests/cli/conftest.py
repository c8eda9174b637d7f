"""Real timings, and a model trained on them in seconds, for the tests of the model commands."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.cli.program import inside
from torch_diode.files.datasets import read_dataset, write_dataset

SHIPPED = Path(__file__).parents[2] / "diode_datasets/matmul/nvidia-h200/train/sweep-1.parquet"
QUICK = ("--num-epochs", "3", "--hidden-dim", "16", "--num-layers", "1")


@pytest.fixture(scope="session")
def timings(tmp_path_factory) -> Path:
    """A folder: `train.parquet` and `apart.msgpack`, which share no problem."""
    folder = tmp_path_factory.mktemp("timings")
    whole = read_dataset(SHIPPED)
    number = whole.problems.ids
    write_dataset(whole.take(number % 100 == 0), folder / "train.parquet")
    write_dataset(whole.take(number % 700 == 1), folder / "apart.msgpack")
    chosen = whole.take(number % 100 == 0)
    codes, names = chosen.codes("template")
    write_dataset(
        chosen.take(~np.isin(codes, [names.index("aten")])), folder / "without_aten.parquet"
    )
    return folder


@pytest.fixture(scope="session")
def trained(timings) -> Path:
    """A model of the timings, its card beside it."""
    model = timings / "models" / "quick.pt"
    data = ("--dataset", timings / "train.parquet", "--model", model)
    ended = inside("--seed", "1", "train", *data, *QUICK)
    assert ended.code == 0, ended.err
    return model
