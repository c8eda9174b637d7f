"""Settings and fixtures shared by all tests."""

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

# Tests run one on each core. With threads of their own on top, programs wait for one another's: a
# training run of two seconds takes a minute. Before torch is imported, and for what tests start.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# The other tests that run meanwhile would count as a busy machine.
os.environ.setdefault("TORCH_DIODE_BUSY_CPU", "1")
# What the user has tuned must neither decide in the tests nor be touched by them.
os.environ["TORCH_DIODE_HOME"] = tempfile.mkdtemp(prefix="torch-diode-tests-")

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

import torch_diode
from torch_diode.files.datasets import read_dataset, write_dataset
from torch_diode.hardware import known
from torch_diode.types.dataset import Dataset
from torch_diode.types.hardware import Hardware

atexit.register(shutil.rmtree, os.environ["TORCH_DIODE_HOME"], ignore_errors=True)
ROOT = Path(__file__).parents[1]
SHIPPED_TIMINGS = ROOT / "diode_datasets/matmul/nvidia-h200/train/sweep-1.parquet"
QUICK_TRAINING = ("--num-epochs", "3", "--hidden-dim", "16", "--num-layers", "1")

# A shared or slow machine must not decide whether a test passes.
settings.register_profile(
    "project", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("project")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Slow tests first: at the end, one of them would keep one core busy and the others idle."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.fixture(scope="session", autouse=True)
def torch_as_it_is() -> None:
    """Importing torch-diode turns it on; tests that compare it with torch need torch alone."""
    torch_diode.disable()


def shipped_timings(step: int) -> Dataset:
    """One in so many problems of the shipped timings, of those that have a choice."""
    whole = read_dataset(SHIPPED_TIMINGS)
    ids = whole.problems.ids
    return whole.take((ids % step == 0) & (np.bincount(ids)[ids] > 1))


@pytest.fixture(scope="session")
def h200() -> Hardware:
    """The chip the shipped timings and model are of."""
    return known("nvidia-h200")


@pytest.fixture
def fake_h200(h200: Hardware) -> Iterator[Hardware]:
    """An H200 as far as torch can tell: Inductor lowers for it, nothing runs."""
    pytest.importorskip("triton", reason="Inductor's CUDA lowering needs triton")
    from torch_diode.integration.capture.fake_gpu import pretend

    with pretend(h200):
        yield h200


@pytest.fixture(scope="session")
def timings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of shipped timings: `train.parquet` and `apart.msgpack`, which share no problem, and
    `without_aten.parquet`."""
    folder = tmp_path_factory.mktemp("timings")
    whole = read_dataset(SHIPPED_TIMINGS)
    number = whole.problems.ids
    chosen = whole.take(number % 100 == 0)
    codes, names = chosen.codes("template")
    write_dataset(chosen, folder / "train.parquet")
    write_dataset(whole.take(number % 700 == 1), folder / "apart.msgpack")
    write_dataset(
        chosen.take(~np.isin(codes, [names.index("aten")])), folder / "without_aten.parquet"
    )
    return folder


@pytest.fixture(scope="session")
def trained(timings: Path) -> Path:
    """A model trained on `timings` in seconds, its card beside it."""
    from tests.cli.program import inside

    model = timings / "models" / "quick.pt"
    data = ("--dataset", timings / "train.parquet", "--model", model, "--log-dir", timings / "logs")
    ended = inside("--seed", "1", "train", *data, *QUICK_TRAINING)
    assert ended.code == 0, ended.err
    return model


@pytest.fixture(scope="session")
def cpu_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of an invented CPU, in a folder of models, its card beside it; it was trained with
    one and two threads."""
    from tests.cpu_timings import HARDWARE, cpu_timings
    from torch_diode.toolkit.training.options import TrainOptions
    from torch_diode.toolkit.training.train import train

    path = tmp_path_factory.mktemp("models") / "matmul" / HARDWARE / "matmul.pt"
    train(cpu_timings(), path, TrainOptions(num_epochs=25, hidden_dim=32))
    return path
