"""How long training takes, and how much memory.

    python benchmarks/training_time.py [--data-dir FOLDER] [--device cuda] [--options --teachers 5]

Runs `torch-diode train` on the shipped training data in processes of their own, for a few epochs
and for a few more: the difference is what an epoch takes, the rest is reading the data, computing
its features and training ATen's head. `--options` go to both runs.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from _live import RESULTS, made_with, save

from torch_diode.files.datasets import read_dataset

ROOT = Path(__file__).parents[1]
CHIP = "nvidia-h200"
DATA = ROOT / "diode_datasets/matmul" / CHIP / "train"


def trained(given: argparse.Namespace, epochs: int) -> dict[str, Any]:
    """Seconds of one training, and the most memory any of its processes took."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "torch_diode", "--seed", str(given.seed)]
        command += ["--device", given.device] if given.device else []
        command += ["train", "--data-dir", str(given.data_dir), "--num-epochs", str(epochs)]
        command += ["--model", f"{folder}/model.pt", *given.options]
        begun = time.monotonic()
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        if status:
            sys.exit(f"{' '.join(command)}: failed")
    seconds = time.monotonic() - begun
    return {"epochs": epochs, "seconds": round(seconds, 1), "peak_mb": round(used.ru_maxrss / 1024)}


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data-dir", type=Path, default=DATA)
    parser.add_argument("--epochs", type=int, nargs=2, default=(1, 3), help="of the two runs")
    parser.add_argument("--device", help="as `torch-diode --device` takes it")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=RESULTS / "training_time.json")
    parser.add_argument("--options", nargs=argparse.REMAINDER, default=[], help="of `train`")
    given = parser.parse_args()
    data = read_dataset(given.data_dir)
    few, more = (trained(given, epochs) for epochs in given.epochs)
    epoch = (more["seconds"] - few["seconds"]) / (more["epochs"] - few["epochs"])
    found = {
        "timings": len(data),
        "problems": len(data.problems),
        "runs": [few, more],
        "seconds an epoch": round(epoch, 1),
        "seconds besides": round(few["seconds"] - epoch * few["epochs"], 1),
    }
    print(f"{found['timings']:,} timings of {found['problems']:,} problems")
    print(f"{epoch:.1f} s an epoch, {found['seconds besides']} s besides, {more['peak_mb']} MB")
    save(given.output, {**made_with(CHIP, given.seed), **found})


if __name__ == "__main__":
    main()
