"""Compile Inductor's matmul templates for an architecture and record the resources of the kernels.

Needs no GPU. A full run (all configs, three precisions, two layouts) is some 23,000 kernels: under
an hour on 16 cores, most of a day on two. It writes as it goes and skips kernels already in the
file, so it can be stopped and resumed. A sweep compiles kernels anyway and lists their resources:
`--from-sweep` records those.

    python workflows/measure_resources.py --arch sm_90 --processes 16
    python workflows/measure_resources.py --arch sm_90 --from-sweep timings/kernels.csv
    python workflows/measure_resources.py --arch sm_90 --sample 30 --seed 1     # a quick check
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import os
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
import triton

from torch_diode.candidates.gpu.compiled_resources import (
    COLUMNS,
    FOLDER,
    VERSION,
    kernel_name,
    read_measured,
)
from torch_diode.candidates.gpu.eligibility import arch_number
from torch_diode.candidates.gpu.exhaustive import exhaustive_configs
from torch_diode.collection.kernels.compile import Job
from torch_diode.collection.kernels.library import KernelLibrary, KernelSpec
from torch_diode.collection.kernels.outcome import CompileOutcome
from torch_diode.collection.workers.compile_ahead import CompileAhead
from torch_diode.files.atomic import write_text
from torch_diode.integration.capture.template_source import template_source
from torch_diode.types.candidate import TRITON_TEMPLATES, Candidate
from torch_diode.types.problem import MMShape

PRECISIONS = ("bfloat16", "float32", "tf32")
LAYOUTS = ("nn", "nt", "tn", "tt")
_SAVE_EVERY_S = 30.0
_ALIGNED = 4096
_CONFIG_COLUMNS = COLUMNS[:5]


def main() -> int:
    """Run; exit code 0 only if every requested kernel was compiled or refused by the compiler."""
    options = _parser().parse_args()
    arch = arch_number(options.arch)
    if not arch:
        print(f"--arch: got {options.arch!r}; expected NVIDIA's, such as sm_90", file=sys.stderr)
        return 2
    path = Path(options.output or FOLDER / f"{options.arch}.json")
    kernels = _already(path)
    if options.from_sweep:
        _file_sweep(kernels, options.from_sweep)
        _write(path, options.arch, kernels, options.measured_with)
        print(f"{path}: {sum(map(len, kernels.values()))} kernels on file")
        return 0
    library = KernelLibrary(template_source, options.units)
    wanted = _wanted(library, options, kernels)
    print(f"{path}: {sum(map(len, kernels.values()))} kernels on file, {len(wanted)} to compile")
    try:
        _measure(library, wanted, arch, options.processes, kernels, path, options.arch)
    finally:
        _write(path, options.arch, kernels)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--arch", default="sm_90")
    parser.add_argument("--output", help="default: the file the package reads for this arch")
    parser.add_argument("--templates", nargs="+", default=list(TRITON_TEMPLATES))
    parser.add_argument("--precisions", nargs="+", default=list(PRECISIONS), choices=PRECISIONS)
    parser.add_argument("--layouts", nargs="+", default=["nn", "nt"], choices=LAYOUTS)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--units", type=int, default=132, help="multiprocessors, for TMA's grid")
    parser.add_argument("--sample", type=int, help="this many configs of each kind, at random")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--from-sweep", nargs="+", type=Path, help="lists a sweep wrote")
    parser.add_argument("--measured-with", nargs=2, metavar=("TORCH", "TRITON"))
    return parser


def _file_sweep(kernels: Kernels, paths: Iterable[Path]) -> None:
    """Record the kernels a sweep compiled for aligned sizes; of a config compiled several times
    (for another op, or with and without EVEN_K), the largest resources."""
    for path in paths:
        with path.open(newline="") as stream:
            for line in csv.DictReader(stream):
                item = 4 if line["dtype"] == "float32" else 2
                layout = "nt"[int(line["transpose_a"])] + "nt"[int(line["transpose_b"])]
                read_along = "mn" if layout == "tn" else "nk"
                aligned = all(int(line[f"unit_{letter}"]) * item == 16 for letter in read_along)
                if not (aligned or line["template"].endswith("_tma")):
                    continue
                precision = "tf32" if int(line["tf32"]) else line["dtype"]
                precision = "bfloat16" if precision == "float16" else precision
                row = tuple(int(line[field]) for field in _CONFIG_COLUMNS)
                needs = [int(line[n]) for n in ("shared_bytes", "registers", "stack_bytes")]
                table = kernels.setdefault(f"{line['template']}/{precision}/{layout}", {})
                before = table.get(row, [0] * len(COLUMNS))[len(row) :]
                table[row] = [*row, *map(max, before, needs)]


Kernels = dict[str, dict[tuple[int, ...], list[int]]]
Wanted = dict[KernelSpec, tuple[str, tuple[int, ...]]]


def _already(path: Path) -> Kernels:
    if not path.is_file():
        return {}
    width = len(_CONFIG_COLUMNS)
    return {
        name: {tuple(row[:width]): row for row in rows}
        for name, rows in read_measured(path)["kernels"].items()
    }


def _wanted(library: KernelLibrary, options: argparse.Namespace, kernels: Kernels) -> Wanted:
    random = np.random.default_rng(options.seed)
    wanted: Wanted = {}
    kinds = itertools.product(options.templates, options.precisions, options.layouts)
    for template, precision, layout in kinds:
        problem = _problem(template, precision, layout)
        name = kernel_name(template, problem)
        configs = list(exhaustive_configs(template, "cuda"))
        if options.sample:
            chosen = random.choice(len(configs), min(options.sample, len(configs)), replace=False)
            configs = [configs[i] for i in sorted(chosen)]
        for candidate, row in _rows(configs):
            if row not in kernels.get(name, {}):
                wanted[library.spec_for(problem, candidate)] = name, row
    return wanted


def _problem(template: str, precision: str, layout: str) -> MMShape:
    """A large problem with well-divisible sizes, for which the rows are valid."""
    tf32 = precision == "tf32"
    return MMShape(
        "bmm" if template == "triton::bmm" else "mm",
        *(_ALIGNED, _ALIGNED, _ALIGNED),
        B=1,
        dtype="float32" if tf32 else precision,
        transpose_a=layout[0] == "t",
        transpose_b=layout[1] == "t",
        tf32=tf32,
    )


def _rows(configs: Iterable[Candidate]) -> Iterator[tuple[Candidate, tuple[int, ...]]]:
    for candidate in configs:
        yield candidate, tuple(getattr(candidate.config, field) for field in _CONFIG_COLUMNS)


def longest_first(jobs: Iterable[Job]) -> list[Job]:
    """Sort jobs by decreasing tile size: large tiles compile longest."""

    def work(job: Job) -> int:
        config = job[1].config
        return -config.block_m * config.block_n * config.block_k

    return sorted(jobs, key=work)


def _measure(
    library: KernelLibrary,
    wanted: Wanted,
    arch: int,
    processes: int,
    kernels: Kernels,
    path: Path,
    name: str,
) -> None:
    start = saved = time.monotonic()
    with CompileAhead(longest_first(library.jobs(wanted)), arch, processes) as ahead:
        for done, outcome in enumerate(ahead.as_completed(), 1):
            kernel, row = wanted[outcome.spec]
            kernels.setdefault(kernel, {})[row] = [*row, *_needs(outcome)]
            now = time.monotonic()
            if now - saved > _SAVE_EVERY_S or done == len(wanted):
                saved = now
                _write(path, name, kernels)
                print(f"{done}/{len(wanted)} in {now - start:.0f} s", flush=True)


def _needs(outcome: CompileOutcome) -> tuple[int, int, int]:
    if outcome.error:
        print(f"refused: {outcome.spec.config}: {outcome.error[:200]}", file=sys.stderr)
        return -1, 0, 0
    return outcome.shared_bytes, outcome.registers, outcome.stack_bytes


def _write(
    path: Path, arch: str, kernels: Kernels, releases: tuple[str, str] | None = None
) -> None:
    """Write one kernel per line, sorted, atomically."""
    with_torch, with_triton = releases or (torch.__version__, triton.__version__)
    head: dict[str, Any] = {
        "version": VERSION,
        "arch": arch,
        "measured_with": {"torch": with_torch, "triton": with_triton},
        "columns": COLUMNS,
    }
    lines = []
    for name in sorted(kernels):
        rows = (json.dumps(row, separators=(",", ":")) for _, row in sorted(kernels[name].items()))
        lines.append(f'  "{name}": [\n' + ",\n".join(f"   {row}" for row in rows) + "\n  ]")
    text = json.dumps(head, indent=1)[:-2] + ',\n "kernels": {\n' + ",\n".join(lines) + "\n }\n}\n"
    write_text(path, text)


if __name__ == "__main__":
    sys.exit(main())
