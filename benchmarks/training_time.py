"""Time and memory of training.

    python benchmarks/training_time.py [--dataset FILE] [--device cuda] [--options --batch-size 64]

Runs `torch-diode train` on a part of the shipped training data in separate processes, for a few
epochs and for three times as many: the difference gives the time of an epoch of one network, the
rest is reading the data, computing its features and scoring. ATen's head is trained during the
first epochs, so there must be enough of them. `--options` go to both runs.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _live import RESULTS, made_with, save

from torch_diode.files.datasets import read_dataset

ROOT = Path(__file__).parents[1]
CHIP = "nvidia-h200"
DATA = ROOT / "diode_datasets/matmul" / CHIP / "train/sweep-1.parquet"


def trained(given: argparse.Namespace, epochs: int) -> float:
    """Seconds of one training run."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "torch_diode", "--seed", str(given.seed)]
        command += ["--device", given.device] if given.device else []
        command += ["train", "--dataset", str(given.dataset), "--num-epochs", str(epochs)]
        command += ["--model", f"{folder}/model.pt", *given.options]
        begun = time.monotonic()
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        return time.monotonic() - begun


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dataset", type=Path, default=DATA)
    parser.add_argument(
        "--epochs", type=int, default=10, help="of the first run; the other has 3 times as many"
    )
    parser.add_argument("--device", help="as `torch-diode --device` takes it")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=RESULTS / "training_time.json")
    parser.add_argument("--options", nargs=argparse.REMAINDER, default=[], help="of `train`")
    given = parser.parse_args()
    data = read_dataset(given.dataset)
    few, more = (trained(given, times * given.epochs) for times in (1, 3))
    epoch = (more - few) / (2 * given.epochs)
    found = {
        "timings": len(data),
        "problems": len(data.problems),
        "seconds": [round(few, 1), round(more, 1)],
        "seconds an epoch": round(epoch, 1),
        "seconds besides": round(few - epoch * given.epochs, 1),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024),
    }
    print(f"{found['timings']:,} timings of {found['problems']:,} problems")
    print(f"{epoch:.1f} s per epoch, {found['seconds besides']} s otherwise, {found['peak_mb']} MB")
    save(given.output, {**made_with(CHIP, given.seed), **found})


if __name__ == "__main__":
    main()
