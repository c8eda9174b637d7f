"""Time of what happens once per process: imports, and loading a large lookup table.

    python benchmarks/start_up.py [--rows 1000000]

Prints and writes medians. The entry point is measured with the full distribution installed into a
temporary directory and no variable set, against torch without it, by turns.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from _live import RESULTS, made_with, save

from torch_diode.candidates import candidate_space
from torch_diode.files.tables import read_table, write_table
from torch_diode.hardware import detect, known
from torch_diode.heuristics import LookupTable
from torch_diode.types.candidate import Candidate, TritonGEMMConfig
from torch_diode.types.problem import MMShape
from torch_diode.types.table import Table, TableEntry

ROOT = Path(__file__).resolve().parent.parent
REPEATS = 9
ENTRY_POINT = """
import importlib.metadata, os, sys, time
os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
import torch
found = importlib.metadata.entry_points
if {without}:
    importlib.metadata.entry_points = lambda **group: [
        point for point in found(**group) if not point.value.startswith("torch_diode")
    ]
start = time.perf_counter()
torch._import_device_backends()
took = time.perf_counter() - start
assert ("torch_diode_autoload" in sys.modules) is not {without}
print(took * 1000)
"""
IMPORT = "import time, torch; start = time.perf_counter(); import torch_diode; "
IMPORT += "print((time.perf_counter() - start) * 1000)"


def milliseconds(program: str, path: Path) -> float:
    """What a program prints in a process of its own that imports from `path`."""
    clean = {name: text for name, text in os.environ.items() if "TORCH_DIODE" not in name}
    command = [sys.executable, "-c", program]
    environ = {**clean, "PYTHONPATH": str(path)}
    return float(subprocess.run(command, env=environ, check=True, capture_output=True).stdout)


def imports(folder: Path) -> Iterator[dict[str, Any]]:
    """The cost of the entry point, and of `import torch_diode` after torch."""
    site = folder / "site"
    install = ("install", "-q", "--no-deps", "--no-build-isolation", "--target", site, ROOT)
    subprocess.run([sys.executable, "-m", "pip", *install], check=True)
    programs = [ENTRY_POINT.format(without=without) for without in (False, True)]
    pairs = [[milliseconds(program, site) for program in programs] for _ in range(REPEATS)]
    more = statistics.median(with_it - without for with_it, without in pairs)
    yield {"what": "import torch with the entry point, more", "ms": more, "budget_ms": 5}
    own = statistics.median(milliseconds(IMPORT, site) for _ in range(REPEATS))
    yield {"what": "import torch_diode after torch", "ms": own, "budget_ms": 50}


def table_of(rows: int) -> Table:
    """A table of many problems, one candidate each."""
    entries = [
        (TableEntry(Candidate("triton::mm", TritonGEMMConfig(64, 128, 64, 8, stages)), 12.5),)
        for stages in (2, 3, 4)
    ]
    sizes = (
        (1 + i % 1000, 64 * (1 + i // 1000 % 100), 64 * (1 + i // 100_000)) for i in range(rows)
    )
    return Table(
        tuple(("nvidia-h200", MMShape("mm", *size), entries[sum(size) % 3]) for size in sizes)
    )


def large_table(folder: Path, rows: int) -> Iterator[dict[str, Any]]:
    """Loading a table, and hits of problems not asked for before."""
    table, chip = table_of(rows), known("nvidia-h200")
    for form in ("json", "msgpack"):
        file = folder / f"table.{form}"
        write_table(table, file)
        times = []
        for _ in range(3):
            start = time.perf_counter()
            loaded = read_table(file)
            times.append((time.perf_counter() - start) * 1000)
        ms = statistics.median(times)
        yield {"what": f"{form} table of {rows:,} rows, load", "ms": ms, "budget_ms": 2000}
        heuristic = LookupTable(loaded)
        times = []
        for m in range(1, 500):
            problem = MMShape("mm", m, 64 * (1 + m % 90), 64)
            space = candidate_space(problem, chip)
            start = time.perf_counter()
            heuristic.rank(problem, space, chip)
            times.append((time.perf_counter() - start) * 1000)
        ms = statistics.median(times)
        yield {"what": f"{form} table of {rows:,} rows, hit", "ms": ms, "budget_ms": 0.15}


def main() -> None:
    parser = argparse.ArgumentParser(description="Time what happens once per process.")
    parser.add_argument("--rows", type=int, default=1_000_000, help="0 for the imports alone")
    parser.add_argument("--output", type=Path, default=RESULTS / "start_up.json")
    options = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory() as folder:
        tables = large_table(Path(folder), options.rows) if options.rows else ()
        for step in itertools.chain(imports(Path(folder)), tables):
            results.append(step)
            print(f"{step['what']:45s} {step['ms']:10.3f} ms of {step['budget_ms']:6g}", flush=True)
    save(options.output, {**made_with(detect("cpu").name), "rows": results})


if __name__ == "__main__":
    main()
