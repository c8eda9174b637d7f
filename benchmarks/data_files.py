"""Size and read speed of datasets on disk: two million made-up timings.

Each number is taken in a fresh process: a time is the best of a few runs, a memory the peak of the
process including imports. The data is made in another process too, because a child's peak counts
from its parent's memory.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from _live import RESULTS, made_with, save

PROBLEMS, CANDIDATES = 2_000, 1_000
JSON_PROBLEMS = 200
RUNS = 5
HERE = Path(__file__).resolve().parent
ROOT = HERE.parent

WRITE = """
import json, sys, time
sys.path.insert(0, sys.argv[1])
from _synthetic import synthetic
from torch_diode.files.datasets import write_dataset
dataset = synthetic(int(sys.argv[3]), int(sys.argv[4]))
start = time.perf_counter()
write_dataset(dataset, sys.argv[2])
print(json.dumps([time.perf_counter() - start, len(dataset)]))
"""
READ = """
import json, resource, sys, time
from torch_diode.files.datasets import read_dataset
import pyarrow.parquet
start = time.perf_counter()
dataset = read_dataset(sys.argv[1])
read = time.perf_counter() - start
start = time.perf_counter()
groups = dataset.problems
fastest = groups.fastest(dataset.values("time_us"))
grouped = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps([read, grouped, peak, len(dataset), len(groups)]))
"""
CONVERT = """
import json, sys, time
from torch_diode.files.datasets import read_dataset, write_dataset
import pyarrow.parquet
start = time.perf_counter()
dataset = read_dataset(sys.argv[1])
write_dataset(dataset, sys.argv[2])
print(json.dumps(len(dataset) / (time.perf_counter() - start)))
"""
IMPORT = """
import json, sys, time
import torch
sys.path.insert(0, sys.argv[1])
start = time.perf_counter()
import torch_diode
print(json.dumps([time.perf_counter() - start, torch_diode._distribution.NAME]))
"""


def main() -> None:
    found = {}
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch)
        found |= parquet(home / "timings.parquet")
        found["JSON to Parquet, timings a second"] = conversion(home)
        for name, package in (("library", library(home)), ("full", ROOT)):
            found[f"import torch_diode after torch, s ({name})"] = importing(package, name)
    show(found)
    write(found)


def parquet(file: Path) -> dict[str, float]:
    """Size, and read times in fresh processes."""
    written, rows = fresh(WRITE, HERE, file, PROBLEMS, CANDIDATES)
    assert rows == PROBLEMS * CANDIDATES
    runs = [fresh(READ, file) for _ in range(RUNS)]
    assert all(run[3:] == [PROBLEMS * CANDIDATES, PROBLEMS] for run in runs)
    return {
        "Parquet, MB": file.stat().st_size / 1e6,
        "write from columns, s": written,
        "read to columns, s": min(run[0] for run in runs),
        "group by problem, s": min(run[1] for run in runs),
        "peak memory of reading and grouping, MB": max(run[2] for run in runs) / 1e6,
    }


def conversion(home: Path) -> float:
    """JSON to Parquet, in timings per second."""
    source = home / "timings.json"
    fresh(WRITE, HERE, source, JSON_PROBLEMS, CANDIDATES)
    return max(fresh(CONVERT, source, home / "converted.parquet") for _ in range(RUNS))


def importing(package: Path, name: str) -> float:
    """Seconds of `import torch_diode` with torch already imported."""
    runs = [fresh(IMPORT, package) for _ in range(RUNS)]
    assert all(("lib" in run[1]) == (name == "library") for run in runs)
    return statistics.median(run[0] for run in runs)


def library(home: Path) -> Path:
    """The tree of the library's wheel: the same files with another `_distribution`."""
    package = home / "library" / "torch_diode"
    package.mkdir(parents=True)
    for entry in (ROOT / "torch_diode").iterdir():
        if entry.name not in ("_distribution.py", "__pycache__"):
            (package / entry.name).symlink_to(entry)
    own = ROOT / "packaging" / "lib" / "distribution.py"
    (package / "_distribution.py").write_bytes(own.read_bytes())
    return package.parent


def fresh(program: str, *arguments: Path | int) -> Any:
    """JSON output of a program run in a fresh process."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    ended = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(ended.stdout)


WANTED = {
    "Parquet, MB": ("<", 25),
    "read to columns, s": ("<=", 1),
    "group by problem, s": ("<=", 2),
    "peak memory of reading and grouping, MB": ("<", 400),
    "JSON to Parquet, timings a second": (">=", 100_000),
    "import torch_diode after torch, s (library)": ("<=", 0.1),
}


def met(value: float, sign: str, limit: float) -> bool:
    return {"<": value < limit, "<=": value <= limit, ">=": value >= limit}[sign]


def show(found: dict[str, float]) -> None:
    print(f"{PROBLEMS * CANDIDATES:,} timings; JSON of {JSON_PROBLEMS * CANDIDATES:,}\n")
    print("| quantity | measured | target |\n| --- | --- | --- |")
    for name, value in found.items():
        wanted = "-"
        if name in WANTED:
            sign, limit = WANTED[name]
            wanted = f"{sign} {limit:,}" + ("" if met(value, sign, limit) else " (missed)")
        shown = f"{value:,.3f}" if value < 1000 else f"{value:,.0f}"
        print(f"| {name} | {shown} | {wanted} |")


def write(found: dict[str, float]) -> None:
    data = {
        **made_with("nvidia-h200"),
        "measured": found,
        "wanted": {name: f"{sign} {limit}" for name, (sign, limit) in WANTED.items()},
        "timings": PROBLEMS * CANDIDATES,
        "load": os.getloadavg()[0],
    }
    save(RESULTS / "data_files.json", data)


if __name__ == "__main__":
    main()
