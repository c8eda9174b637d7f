"""Whole models on this machine's CPU: torch-diode, torch.compile's own ways, and other runtimes.

    python benchmarks/cpu_models.py --minutes 15 [--models bert vit] [--threads 2 1] [--peers]
    python benchmarks/cpu_models.py --dry --models bert      # tiny models, seconds

Models of `transformers` at their published sizes with random weights, and a recommender, in
float32: eager, `torch.compile`, the same with freezing, max-autotune with freezing, torch-diode,
and torch-diode with freezing; with `--peers` also ONNX Runtime, OpenVINO and AMD's zentorch, each
installed in an environment of its own under a cache folder. A peer that fails is recorded with its
reason.

Each variant has a process with empty caches, which tells seconds of the first call (after a small
compile that includes the imports), peak memory, and the relative difference to eager's output.
Then all processes of a model are called in turn, a sixth of a second each: a low quantile of the
calls is compared with plain torch.compile's, which runs twice for the noise between processes. A
file of the same seed, machine and model of torch-diode is resumed.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

# torch-diode is enabled by the processes that use it.
os.environ["TORCH_DIODE"] = "0"

import torch
from _cpu_models import MODELS
from _cpu_peers import cache_folder, environments
from _cpu_ratios import plot, show, summary
from _cpu_turns import measured
from _cpu_variants import PEERS, PLAIN, TRAINS, VARIANTS
from _live import Row, begun, results_file, save

from torch_diode.hardware import detect

EXPECTED_S = 60.0
"""A case starts only if that much time is left."""


def main() -> int:
    given = _arguments()
    aside = given.dry or given.rule
    given.output = given.output or results_file("cpu_models", aside)
    deadline = time.monotonic() + 60 * given.minutes
    head, rows = begun(given.output, detect("cpu").name, given.seed, given.dry)
    head |= {"cpu": detect("cpu").to_dict(), "rule": given.rule}
    given.seed = head["seed"]
    names = [n for n in MODELS if not given.models or n.startswith(tuple(given.models))]
    variants = list(dict.fromkeys([PLAIN, *given.variants]))
    pythons, faults = environments(list(PEERS) if given.peers else [], given.cache)
    for threads in given.threads:
        for name in names:
            wanted = [n for n in [*variants, *pythons] if "training" not in name or n in TRAINS]
            if time.monotonic() + EXPECTED_S > deadline and not given.dry:
                continue
            if _is_there(name, threads, wanted, rows):
                continue
            rows = [r for r in rows if (r["model"], r["threads"]) != (name, threads)]
            rows += case(name, threads, wanted, pythons, given)
            rows += [_row(name, peer, threads, {"fault": why}) for peer, why in faults.items()]
            save(given.output, {**head, "summary": summary(rows), "rows": rows})
    show(rows)
    if any("ms" in row for row in rows):
        plot(head, rows, given.output.with_suffix(".svg"))
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", nargs="*", default=[], help="prefixes of their names")
    parser.add_argument("--variants", nargs="*", default=list(VARIANTS), choices=list(VARIANTS))
    parser.add_argument("--threads", nargs="*", type=int, default=[torch.get_num_threads(), 1])
    parser.add_argument("--minutes", type=float, default=15, help="start no case after that")
    parser.add_argument("--seconds", type=float, default=12, help="calls of a case, in turn")
    parser.add_argument("--peers", action="store_true", help=f"also {', '.join(PEERS)}")
    parser.add_argument("--cache", type=Path, default=cache_folder(), help="of the peers")
    parser.add_argument("--seed", type=int, help="seed of the weights; default: the file's")
    parser.add_argument(
        "--rule", action="store_true", help="oneDNN for all float32, instead of a model's choice"
    )
    parser.add_argument("--dry", action="store_true", help="tiny models, a moment each")
    parser.add_argument(
        "--output", type=Path, help="default: results/cpu_models.json, except with --dry or --rule"
    )
    given = parser.parse_args()
    given.threads = list(dict.fromkeys(given.threads))
    if given.dry:
        given.seconds = 0.0
    return given


def case(
    name: str,
    threads: int,
    variants: list[str],
    pythons: dict[str, Path],
    given: argparse.Namespace,
) -> list[Row]:
    """All variants of one model."""
    begun = time.monotonic()
    switches = [*(["--tiny"] if given.dry else []), *(["--rule"] if given.rule else [])]
    arguments = {n: [name, n, "--seed", str(given.seed), *switches] for n in variants}
    found = measured(arguments, threads, pythons, given.seconds, PLAIN)
    results = ", ".join(
        f"{n} {row['ms']:.3g}" if "ms" in row else f"{n} failed" for n, row in found.items()
    )
    spent = time.monotonic() - begun
    print(f"{name}, {threads} threads, ms: {results} ({spent:.0f} s)", flush=True)
    return [_row(name, variant, threads, row) for variant, row in found.items()]


def _row(name: str, variant: str, threads: int, found: Row) -> Row:
    return {"model": name, "variant": variant, "threads": threads, **found}


def _is_there(name: str, threads: int, wanted: list[str], rows: list[Row]) -> bool:
    """Whether a case was measured with all these variants."""
    own = [row for row in rows if (row["model"], row["threads"]) == (name, threads)]
    return {row["variant"] for row in own}.issuperset(wanted)


if __name__ == "__main__":
    sys.exit(main())
