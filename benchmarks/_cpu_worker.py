"""Process of one variant of the CPU model benchmark: answers lines of JSON on its standard input.

    python _cpu_worker.py MODEL VARIANT --threads N --seed S [--tiny] [--rule]

It builds the model, runs it eagerly, and says so; `{"compile": true}` asks for the first call,
`{"calls": N}` for the milliseconds of each of N calls after one that is not counted.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import torch
from _cpu_models import build
from _cpu_variants import PEERS, VARIANTS, Compiled
from _models_calls import difference, kept, step_of

Row = dict[str, Any]


def main() -> None:
    given = _arguments()
    # Libraries print where they like: the answers have a channel of their own.
    with os.fdopen(os.dup(1), "w", buffering=1) as channel:
        os.dup2(2, 1)
        torch.set_num_threads(given.threads)
        worker = Worker(given)
        print(json.dumps({"ready": True}), file=channel)
        for line in sys.stdin:
            request = json.loads(line)
            answer = worker.compile() if "compile" in request else worker.time(request["calls"])
            print(json.dumps(answer), file=channel)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("variant", choices=[*VARIANTS, *PEERS])
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--rule", action="store_true")
    return parser.parse_args()


class Worker:
    """A model prepared in one way."""

    def __init__(self, given: argparse.Namespace) -> None:
        prepare = (VARIANTS | PEERS)[given.variant]
        case = build(given.model, given.seed, given.tiny)
        self.expected = kept(step_of(case)())
        self.diode = isinstance(prepare, Compiled) and prepare.diode
        if self.diode:
            enable(given.rule)
        self.call = prepare(case, given.threads)

    def compile(self) -> Row:
        """Seconds of the first call, difference to eager, peak memory and decisions."""
        before = state() if self.diode else None
        begun = time.perf_counter()
        first = self.call()
        row: Row = {"compile_s": round(time.perf_counter() - begun, 4)}
        apart = difference(kept(first), self.expected)
        row["difference"] = max(apart, difference(kept(self.call()), self.expected))
        row["peak_mb"] = peak_mb()
        return row | (decided(*before) if before else {})

    def time(self, calls: int) -> Row:
        """Milliseconds of each call; the first brings the weights back into the caches."""
        self.call()
        taken = []
        for _ in range(calls):
            begun = time.perf_counter()
            self.call()
            taken.append(round((time.perf_counter() - begun) * 1e3, 5))
        return {"ms": taken}


def enable(rule: bool) -> None:
    """Turn torch-diode on as its import would, or with oneDNN wherever it can run."""
    import torch_diode as td

    td.enable(td.CustomHeuristic(onednn_first, "rule: oneDNN for float32") if rule else None)


def onednn_first(problem: Any, candidates: Any) -> Any:
    """All float32 matmuls to oneDNN, with a packed weight where possible; others abstain."""
    names = ("onednn_packed", "onednn") if problem.dtype == "float32" else ()
    return [c for name in names for c in candidates if c.template == name] or None


def state() -> tuple[int, Counter[str]]:
    """Number of decisions so far, and the reasons for those not taken."""
    import torch_diode as td

    counters = td.status().counters
    return len(td.explain()), counters.abstentions + counters.fallbacks


def decided(before: int, reasons_before: Counter[str]) -> Row:
    """The heuristics used, decisions with their counts, and why there was none."""
    import torch_diode as td

    found = td.explain()[before:]
    counted = Counter((str(d.problem), str(d.winner.candidate)) for d in found)
    took = sorted(d.microseconds for d in found)
    return {
        "heuristics": td.status().heuristics,
        "decisions": [[*key, count] for key, count in counted.items()],
        "decision_us": round(took[len(took) // 2], 1) if took else None,
        "abstentions": dict(state()[1] - reasons_before),
    }


def peak_mb() -> float | None:
    """Largest resident memory of this process so far, where the system tells it."""
    status = Path("/proc/self/status")
    if not status.exists():
        return None
    line = next(each for each in status.read_text().splitlines() if each.startswith("VmHWM"))
    return round(int(line.split()[1]) / 1024, 1)


if __name__ == "__main__":
    main()
