"""The kernels torch-diode chooses, against ATen, max-autotune and the best known. Needs a GPU.

    python benchmarks/selection_live.py --minutes 9.5 [--problems 150] [--parts clean,tuned,cold]
    python benchmarks/selection_live.py --dry --problems 4      # no GPU: made-up times

Problems outside the training data, half with the log-normal sizes of the validation set, half of
real models; for problems of the validation set the sweep over the complete space names the best.
Three parts, each adding to the same file; a file of the same seed, machine and model is resumed:

clean  Inductor's own fixed-size kernels of torch-diode's plain choice, of the model's and the
       sweep's best, and of all configs in max-autotune's DEFAULT list, compiled by processes
       without a GPU and timed together with ATen: GPU time, cold L2, no launches, results
       verified. The best known is the fastest of them all.
tuned  Max-autotune's picks by its own benchmark, plain and with torch-diode, in a real
       `torch.compile` on an otherwise idle machine, with kernels compiled before.
cold   Seconds of real compiles with empty caches, of a few problems, four ways.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

# torch's usual check for a GPU would keep forked processes from using it.
os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
# torch-diode is enabled explicitly below.
os.environ["TORCH_DIODE"] = "0"

import torch
from _live import as_table, begun, results_file, save
from _selection import DIODE, Row, posed_problems, summary, table_rows, worst
from _selection_bench import bench
from _selection_compiling import compiler
from _selection_dry import dry_bench, dry_compiler
from _selection_run import Run

from torch_diode.collection.cluster.node import compiling_processes
from torch_diode.collection.kernels.compile import use_inductors_ptxas
from torch_diode.collection.workers.pool import WorkerPool
from torch_diode.hardware import known
from torch_diode.types.candidate import ATEN
from torch_diode.types.errors import DiodeError
from torch_diode.types.hardware import Hardware
from workflows.measuring.pipeline import GRACE_S
from workflows.measuring.private_caches import private_caches
from workflows.measuring.worker_state import seconds_alive

PARTS = {"clean": 0.48, "tuned": 0.37, "cold": 0.15}
"""Parts, with their shares of the time."""


def measure(
    given: argparse.Namespace, hardware: Hardware, store: Callable[[], None], rows: dict[str, Row]
) -> Run:
    end = time.monotonic() - seconds_alive() + 60 * given.minutes
    parts = [name for name in PARTS if name in given.parts.split(",")]
    torch.set_num_threads(1)  # threads would not survive the fork
    use_inductors_ptxas()
    # First of all: once imported, Inductor may initialise CUDA, and processes forked
    # after that cannot use the GPU.
    timing, compiling = (dry_bench, dry_compiler) if given.dry else (bench, compiler)
    with WorkerPool[Any, Any]([lambda mark: timing(hardware, given.seed, mark)]) as benches:
        benches.start()
        run = Run(posed_problems(given.problems, given.seed, hardware), rows, store, end)
        total = sum(PARTS[name] for name in parts)
        for name in parts:
            begun = time.monotonic()
            deadline = begun + (end - GRACE_S - begun) * PARTS[name] / total
            if name == "clean":
                works = [lambda mark: compiling(hardware, mark)] * given.processes
                run.clean(benches, works, deadline)
            else:
                run.one_by_one(name, given.cold, benches, deadline)
            total -= PARTS[name]
            print(f"{name}: {time.monotonic() - begun:.0f} s", flush=True)
    return run


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--problems", type=int, default=150)
    parser.add_argument(
        "--minutes", type=float, default=9.5, help="time limit; results so far are kept"
    )
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--cold", type=int, default=12, help="problems of the cold part")
    parser.add_argument("--processes", type=int, default=compiling_processes())
    parser.add_argument("--seed", type=int, help="seed of the draw; default: the file's")
    parser.add_argument("--hardware", default="nvidia-h200")
    parser.add_argument("--cache", type=Path, help="folder of compiled kernels to keep and reuse")
    parser.add_argument("--dry", action="store_true", help="without a GPU, with made-up times")
    parser.add_argument(
        "--output", type=Path, help="default: results/selection_live.json, except with --dry"
    )
    given = parser.parse_args()
    given.output = given.output or results_file("selection_live", given.dry)
    if not given.dry and not torch.backends.cuda.is_built():
        print("skipped: needs a GPU, and this torch is built without CUDA")
        return 0
    hardware = known(given.hardware)
    head, before = begun(given.output, hardware.name, given.seed, given.dry)
    given.seed = head["seed"]
    rows = {row["problem"]: row for row in before}

    def store() -> None:
        kept = [row for row in rows.values() if "times" in row or "cold" in row]
        save(given.output, {**head, "summary": summary(kept), "rows": kept})

    try:
        with private_caches(given.cache):
            run = measure(given, hardware, store, rows)
    except DiodeError as fault:
        print(f"error: {fault}", file=sys.stderr)
        return 2
    show(list(rows.values()), run.faults)
    return 0


def show(rows: list[Row], faults: Counter[str]) -> None:
    found = summary([row for row in rows if "times" in row or "cold" in row])
    print(as_table(table_rows(found)))
    for name in ("kernels benchmarked", "picks not timed", "compile seconds"):
        print(f"\n{name}:")
        for label, value in found[name].items():
            print(f"  {label:34} {value:.4g}")
    print(f"chosen ATen: {found['chosen ATen']:.3f} of all; decision {found['decision_us']:.0f} us")
    for method, over in ((DIODE, "best"), (DIODE, ATEN)):
        print()
        print(as_table(worst(rows, method, over, 8)))
    for text, count in faults.most_common(10):
        print(f"{count:6,}  {text}")


if __name__ == "__main__":
    sys.exit(main())
