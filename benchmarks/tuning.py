"""`torch-diode tune` on this machine's CPU: its time, its second run, and what it chooses.

    python benchmarks/tuning.py [--program my_program.py]

Tunes a program of a 12-layer transformer with ten distinct matmuls twice, into two directories of
its own: the kernels chosen by the first measurement are scored by the times of the second, against
the best of all candidates there. Nothing in it is frozen, so that the libraries alone are timed.

The second run compiles the program anew, since a graph from torch's cache shows no matmul.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from _live import RESULTS, made_with, save

from torch_diode.candidates import candidate_space
from torch_diode.files.datasets import read_dataset
from torch_diode.files.tables import read_table
from torch_diode.hardware import detect
from torch_diode.heuristics import LookupTable, policy
from torch_diode.heuristics.tuned import TunedTable
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.dataset import Dataset
from torch_diode.types.problem import MMShape

PROGRAM = """
import torch, torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.o = (nn.Linear(512, 512, bias=False) for _ in range(2))
        self.k, self.v = (nn.Linear(512, 128, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(512, 1408, bias=False) for _ in range(2))
        self.down = nn.Linear(1408, 512, bias=False)

    def forward(self, x):
        q = self.q(x).view(-1, 8, 64).transpose(0, 1)
        k, v = (each(x).view(-1, 2, 64).transpose(0, 1) for each in (self.k, self.v))
        k, v = (each.repeat_interleave(4, 0) for each in (k, v))
        weights = (q @ k.transpose(1, 2) / 8).softmax(-1)
        x = x + self.o((weights @ v).transpose(0, 1).reshape(-1, 512))
        return x + self.down(F.silu(self.gate(x)) * self.up(x))

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.project = nn.Embedding(8000, 256), nn.Linear(256, 512)
        self.layers = nn.ModuleList(Layer() for _ in range(12))
        self.pool, self.label = nn.Linear(512, 512), nn.Linear(512, 2)
        self.head = nn.Linear(512, 8000, bias=False)

    def forward(self, ids):
        x = self.project(self.embed(ids))
        for layer in self.layers:
            x = layer(x)
        return self.head(x), self.label(torch.tanh(self.pool(x[:1])))

model = torch.compile(Model().eval())
with torch.no_grad():
    model(torch.randint(8000, (128,)))
"""


def seconds(home: Path, *command: str | Path) -> float:
    """Wall time of a command that keeps what it measures in `home`."""
    environ = {**os.environ, "TORCH_DIODE_HOME": str(home)}
    start = time.perf_counter()
    subprocess.run([sys.executable, *map(str, command)], env=environ, check=True)
    return time.perf_counter() - start


def kept(home: Path) -> Path:
    """The folder of the one table that is kept."""
    (folder,) = (home / "tuned").iterdir()
    return folder


def scored(table: Path, again: Dataset) -> list[dict[str, Any]]:
    """Each problem's choice by the table, by the times of another measurement."""
    hardware, rows = detect("cpu"), read_table(table)
    heuristic: LookupTable = TunedTable(rows)
    times: dict[MMShape, dict[Any, float]] = {}
    for timing in again:
        if timing.time_us is not None:
            times.setdefault(timing.problem, {})[timing.candidate] = timing.time_us
    found = []
    for problem, measured in times.items():
        candidates = Candidates.of(
            c for c in candidate_space(problem, hardware, ("aten", "onednn")) if c in measured
        )
        ranking = heuristic.rank(problem, candidates, hardware)
        assert ranking is not None, problem
        chosen = candidates[int(policy.single_choice_order(ranking, candidates)[0])]
        best = min(measured[candidate] for candidate in candidates)
        found.append(
            {
                "problem": problem.key,
                "chosen": str(chosen),
                "us": round(measured[chosen], 2),
                "best_us": round(best, 2),
                "ratio": round(measured[chosen] / best, 4),
            }
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="Time tuning, and score what it chooses.")
    parser.add_argument("--program", type=Path, help="by default a 12-layer transformer")
    parser.add_argument("--output", type=Path, default=RESULTS / "tuning.json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        program = options.program
        if program is None:
            program = folder / "transformer.py"
            program.write_text(PROGRAM, encoding="utf-8")
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(folder / "inductor")
        tune = ("-m", "torch_diode", "--device", "cpu", "tune", program)
        first, second = folder / "first", folder / "second"
        seconds(first, program)  # fills torch's caches
        alone_s = seconds(first, program)
        os.environ["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"
        compiled_s = seconds(first, program)
        del os.environ["TORCHINDUCTOR_FORCE_DISABLE_CACHES"]
        tune_s = seconds(first, *tune)
        again_s = seconds(first, *tune)
        seconds(second, *tune)
        again = read_dataset(kept(second) / "timings.parquet")
        problems = scored(kept(first) / "table.json", again)
    geomean = math.exp(sum(math.log(row["ratio"]) for row in problems) / len(problems))
    rows = [
        {"what": "tuning, s", "value": tune_s, "budget": 60},
        {"what": "the program alone, s", "value": alone_s},
        {"what": "the program compiled anew, s", "value": compiled_s},
        {"what": "second run, s", "value": again_s},
        {"what": "beyond the program alone, s", "value": again_s - alone_s, "budget": 5},
        {"what": "beyond the program compiled anew, s", "value": again_s - compiled_s, "budget": 5},
        {"what": "chosen over the best, geomean", "value": geomean, "budget": 1.02},
    ]
    for row in rows:
        row["value"] = round(row["value"], 4)
        print(f"{row['what']:35} {row['value']:8.4g}   budget {row.get('budget', '-')}")
    save(options.output, {**made_with(detect("cpu").name), "rows": rows, "problems": problems})


if __name__ == "__main__":
    main()
