#!/usr/bin/env python3
"""Collects a training set over ops, dtypes, layouts and alignments, in strata that share kernels.

    python workflows/collect_matmul.py --output timings/ --minutes 10

Sizes come half from the law of real workloads and half evenly over the orders of magnitude. Each
stratum gets a random part of its configs, half of them drawn from those the analytical heuristic
thinks well of: together the strata cover the space, and every problem has good candidates.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import time
from collections import Counter
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch

from torch_diode.candidates.space import candidate_space
from torch_diode.collection.campaign import Campaign, Group, GroupReport, Task
from torch_diode.collection.kernel_compile import CompileOutcome
from torch_diode.collection.kernels import KernelLibrary
from torch_diode.collection.shape_sources import LogNormal, LogUniform, ShapeSource
from torch_diode.collection.store import TimingStore
from torch_diode.heuristics.analytical import AnalyticalHeuristic
from torch_diode.integration.template_source import template_source
from torch_diode.types.candidate import CONFIG_FIELDS, Candidate
from torch_diode.types.candidates import Candidates
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape

MOST_FLOPS = {"bfloat16": 1e11, "float16": 1e11, "tf32": 5e10, "float32": 6e9}
FAR = 6.0
"""Candidates the analytical heuristic thinks this many times slower than the best are timed on a
tenth of the problems only: most of the GPU's time would go into the hopeless ones."""


@dataclass(frozen=True)
class Stratum:
    """Problems of one kind: op, dtype, layout, bias, and how their sizes divide."""

    op: str
    dtype: str
    layout: str
    aligned: bool = True
    bias: str = ""
    tf32: bool = False
    most_m: int = 0

    @property
    def name(self) -> str:
        """Short, for progress lines."""
        dtype = "tf32" if self.tf32 else self.dtype
        extra = (self.bias and f" {self.bias}") + (f" M<={self.most_m}" if self.most_m else "")
        return f"{self.op} {dtype} {self.layout} {'aligned' if self.aligned else 'odd'}{extra}"

    def problems(self, count: int, seed: int) -> list[MMShape]:
        """Distinct problems of this kind, within what can be timed quickly."""
        source = random.Random(f"{self.name} {seed}")
        limit = MOST_FLOPS["tf32" if self.tf32 else self.dtype]
        found: dict[MMShape, None] = {}
        while len(found) < count:
            law = LogNormal() if source.random() < 0.5 else LogUniform(16, 8192)
            drawn = ShapeSource(
                law, (self.op,), (self.dtype,), (self.layout,), low=2, high=32768, tf32=self.tf32
            )
            problem = next(iter(drawn.draw(1, source.getrandbits(48))))
            problem = self._fitted(problem, source)
            if problem.flops <= limit and problem.bytes_moved <= 1 << 30:
                found[problem] = None
        return list(found)

    def _fitted(self, problem: MMShape, source: random.Random) -> MMShape:
        m, n, k = problem.M, problem.N, problem.K
        if self.most_m:
            m = source.randint(1, self.most_m)
        if self.aligned:
            step = source.choice((64, 64, 32, 16, 8))
            n, k = max(n // step, 1) * step, max(k // step, 1) * step
            m = max(m // step, 1) * step if self.layout[0] == "t" else m
        else:
            m, n, k = m | 1, n | 1, k | 1
        bias = {"bias": self.bias} if self.bias else {}
        return replace(problem, M=m, N=n, K=k, **bias)


def strata() -> list[Stratum]:
    """The kinds, in the order of their worth: a run that ends early has the most common ones."""
    plan: list[Stratum] = []
    for dtype, tf32 in (("bfloat16", False), ("float16", False), ("float32", True)):
        common = {"dtype": dtype, "tf32": tf32}
        plan += [
            Stratum("mm", layout="nt", **common),
            Stratum("mm", layout="nn", **common),
            Stratum("addmm", layout="nt", **common),
            Stratum("bmm", layout="nn", **common),
            Stratum("bmm", layout="nt", **common),
            Stratum("mm", layout="tn", **common),
            Stratum("mm", layout="nt", most_m=64, **common),
            Stratum("baddbmm", layout="nt", **common),
            Stratum("mm", layout="nt", aligned=False, **common),
            Stratum("mm", layout="nn", aligned=False, **common),
            Stratum("addmm", layout="nn", **common),
            Stratum("addmm", layout="nt", bias="matrix", **common),
            Stratum("bmm", layout="nn", aligned=False, **common),
            Stratum("mm", layout="tt", **common),
            Stratum("bmm", layout="tn", **common),
            Stratum("addmm", layout="nt", aligned=False, **common),
            Stratum("baddbmm", layout="nn", **common),
        ]
    plan += [
        Stratum("mm", "float32", "nt"),
        Stratum("mm", "float32", "nn"),
        Stratum("addmm", "float32", "nt"),
        Stratum("bmm", "float32", "nn"),
        Stratum("baddbmm", "float32", "nt"),
    ]
    # By rounds over the dtypes, not dtype by dtype.
    rank = {id(s): (i % 17 if i < 51 else 4 * (i - 50)) for i, s in enumerate(plan)}
    return sorted(plan, key=lambda s: rank[id(s)])


def candidate_configs(
    problems: list[MMShape], hardware: Hardware, per_template: int, seed: int
) -> set[Candidate]:
    """A stratum's configs: half by chance, half those the analytical heuristic ranks high."""
    everything = {c for p in problems[:40] for c in candidate_space(p, hardware) if c.config}
    praised: Counter[Candidate] = Counter()
    heuristic = AnalyticalHeuristic()
    for problem in problems[:60]:
        space = candidate_space(problem, hardware)
        times = heuristic.predict_us(problem, space, hardware)
        for template in space.templates:
            rows = np.flatnonzero(space.is_template(template))
            for row in rows[np.argsort(times[rows])][:30]:
                praised[space[int(row)]] += 1
    chosen: set[Candidate] = set()
    source = random.Random(seed)
    for template in sorted({c.template for c in everything}):
        own = sorted((c for c in everything if c.template == template), key=str)
        best = [c for c, _ in praised.most_common() if c.template == template]
        best = best[: per_template // 2]
        rest = [c for c in own if c not in set(best)]
        chosen |= {*best, *source.sample(rest, min(len(rest), per_template - len(best)))}
    return chosen


def make_group(
    stratum: Stratum, hardware: Hardware, problems: int, per_template: int, seed: int
) -> Group:
    """The stratum's problems, each with those of the stratum's configs that can run it."""
    shapes = stratum.problems(problems, seed)
    configs = candidate_configs(shapes, hardware, per_template, seed)
    tasks: list[Task] = []
    for shape in shapes:
        space = candidate_space(shape, hardware)
        times = AnalyticalHeuristic().predict_us(shape, space, hardware)
        far = FAR * times.min() if len(tasks) % 10 else np.inf
        keep = [
            c
            for c, expected in zip(space, times, strict=True)
            if c.template == "aten" or (c in configs and expected <= far)
        ]
        tasks.append((shape, Candidates.of(keep)))
    return Group.of(stratum.name, tasks, KernelLibrary(template_source, hardware.units))


def main() -> None:
    """Plan, then run until done or out of time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True, help="directory of shards")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--problems", type=int, default=250, help="in each stratum")
    parser.add_argument("--configs", type=int, default=240, help="of each template, a stratum")
    parser.add_argument("--processes", type=int, default=max((os.cpu_count() or 2) - 2, 1))
    parser.add_argument("--first", type=int, default=0, help="stratum to start with")
    parser.add_argument("--count", type=int, default=1000, help="strata to do")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--hardware", default="nvidia-h200")
    parser.add_argument("--plan", action="store_true", help="only show the plan")
    given = parser.parse_args()

    from torch_diode.hardware import known

    start = time.monotonic()
    deadline = start + 60 * given.minutes
    hardware = known(given.hardware)
    chosen = strata()[given.first : given.first + given.count]
    plans = [
        (s, hardware, given.problems, given.configs, given.seed + i)
        for i, s in enumerate(chosen, given.first)
    ]
    with multiprocessing.get_context("fork").Pool(given.processes) as pool:
        groups = pool.starmap(make_group, plans, chunksize=1)
    import triton

    releases = {"torch": torch.__version__.partition("+")[0], "triton": triton.__version__}
    library = KernelLibrary(template_source, hardware.units)
    campaign = Campaign(groups, library, hardware, releases, given.seed)
    print(f"planned {len(groups)} strata in {time.monotonic() - start:.0f} s", flush=True)
    if given.plan:
        for group in groups:
            timings = sum(len(c) for _, c in group.tasks)
            print(f"{group.name:34} {len(group.specs):6} kernels {timings:8} timings")
        return
    reports: list[GroupReport] = []

    def show(report: GroupReport) -> None:
        reports.append(report)
        rate = report.timings / max(report.waited_s + report.timed_s, 1e-9)
        print(
            f"{time.monotonic() - start:6.0f} s  {report.name:34} {report.problems:4} problems "
            f"{report.timings:7} timings, waited {report.waited_s:5.1f} s, timed "
            f"{report.timed_s:5.1f} s, {rate:6.0f}/s, stalled {report.stalled}, "
            f"wrong {report.wrong}",
            flush=True,
        )

    with TimingStore(given.output, {"collected": (time.strftime("%Y-%m-%d"),)}) as store:
        outcomes = campaign.run(store, given.processes, deadline, show)
    total = sum(r.timings for r in reports)
    spent = time.monotonic() - start
    print(
        f"{total} timings of {sum(r.problems for r in reports)} problems in {spent:.0f} s: "
        f"{total / spent:.0f}/s"
    )
    summary = json.dumps([asdict(r) for r in reports], indent=1)
    (given.output / "summary.txt").write_text(summary)
    write_resources(outcomes, given.output / "kernels.csv")


def write_resources(outcomes: list[CompileOutcome], path: Path) -> None:
    """What each compiled kernel needs, one line a kernel."""
    names = ("template", "op", "dtype", "transpose_a", "transpose_b", "bias", "even_k", "tf32")
    needs = ("shared_bytes", "registers", "stack_bytes", "seconds")
    lines = [",".join((*names, *CONFIG_FIELDS[:6], "unit_m", "unit_n", "unit_k", *needs))]
    for o in outcomes:
        kind = [getattr(o.spec.source, name) for name in names[:-1]]
        config = [getattr(o.spec.config, name) for name in CONFIG_FIELDS[:6]]
        used = [o.shared_bytes, o.registers, o.stack_bytes, round(o.seconds, 3)]
        row = (*kind, o.spec.tf32, *config, *o.spec.units, *used)
        lines.append(",".join(str(int(v) if isinstance(v, bool) else v) for v in row))
    path.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
