"""The kernels torch-diode chooses on this machine's CPU, against ATen, oneDNN and the best known.

    python benchmarks/cpu_selection.py --minutes 15 [--problems 120] [--threads 2 1]
    python benchmarks/cpu_selection.py --dry --problems 2      # on a busy machine

Single problems, half with log-normal sizes and half of real models, float32 and bfloat16, in three
layouts, with a weight that is an input or a constant (frozen). Each is compiled for real, with
empty caches: by plain torch, with torch-diode, frozen ones with max-autotune too, and once for each
candidate there is on this CPU, forced. All are then timed in one run with the collection's timer:
weights cold, code warm, in turn; the time includes torch's own call of compiled code, the same for
all. The best known is the fastest of them. A file of the same seed, machine and model is resumed.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

# torch-diode is enabled explicitly.
os.environ["TORCH_DIODE"] = "0"

import torch
from _cpu_problems import Posed, posed_problems
from _cpu_selection import plot, show, summary
from _cpu_ways import DIODE, PLAIN, Bench, threads
from _cpu_worker import onednn_first
from _live import Row, attempted, begun, results_file, save

from torch_diode.collection.timers.cpu_load import CpuWatch, UnwatchedCpu
from torch_diode.hardware import detect
from torch_diode.heuristics.custom import CustomHeuristic

EXPECTED_S = 20.0
"""A problem starts only if that much time is left."""


def main() -> int:
    given = _arguments()
    deadline = time.monotonic() + 60 * given.minutes
    hardware = detect("cpu")
    head, rows = begun(given.output, hardware.name, given.seed, given.dry)
    head |= {"cpu": hardware.to_dict(), "rule": given.rule}
    rule = CustomHeuristic(onednn_first, "rule") if given.rule else None
    posed = posed_problems(given.problems, head["seed"])
    for number in given.threads:
        with threads(number):
            cache = 1 << 20 if given.dry else hardware.l3_bytes
            watch = UnwatchedCpu() if given.dry else CpuWatch()
            bench = Bench(rule, head["seed"], cache, watch)
            there = {row["problem"] for row in rows if row["threads"] == number}
            for one in posed:
                if one.key in there or time.monotonic() + EXPECTED_S > deadline:
                    continue
                rows += measured(one, number, bench)
                save(given.output, {**head, "summary": summary(rows), "rows": rows})
    show(summary(rows))
    if rows:
        plot(head, rows, given.output.with_suffix(".svg"))
    return 0


def measured(posed: Posed, number: int, bench: Bench) -> list[Row]:
    """The row of a problem; none where something failed, which is printed."""
    begun = time.monotonic()
    row, _ = attempted(lambda: bench.row(posed))
    if row is None:
        return []
    times = row["times"]
    best = min(times, key=lambda name: times[name][0])
    results = ", ".join(f"{name} {times[name][0]:.0f}" for name in (PLAIN, DIODE) if name in times)
    print(
        f"{posed.key}, {number} threads: {results}, best {best} {times[best][0]:.0f} us "
        f"({time.monotonic() - begun:.0f} s)",
        flush=True,
    )
    return [{**row, "threads": number}]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--problems", type=int, default=120)
    parser.add_argument("--threads", nargs="*", type=int, default=[torch.get_num_threads(), 1])
    parser.add_argument("--minutes", type=float, default=15, help="start no problem after that")
    parser.add_argument("--seed", type=int, help="seed of the draw; default: the file's")
    parser.add_argument(
        "--rule", action="store_true", help="oneDNN for all float32, instead of a model's choice"
    )
    parser.add_argument("--dry", action="store_true", help="on a busy machine: times say little")
    parser.add_argument(
        "--output", type=Path, help="default: results/cpu_selection.json, except with --dry, --rule"
    )
    given = parser.parse_args()
    given.threads = list(dict.fromkeys(given.threads))
    given.output = given.output or results_file("cpu_selection", given.dry or given.rule)
    return given


if __name__ == "__main__":
    sys.exit(main())
