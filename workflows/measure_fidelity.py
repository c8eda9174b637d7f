#!/usr/bin/env python3
"""Times the same candidates as Inductor's own fixed-size kernels and as the sweep's, and compares.

    python workflows/measure_fidelity.py --output diode_datasets/matmul --minutes 3.2
    python workflows/measure_fidelity.py --analyse static.parquet sweep.parquet

Half of a problem's candidates are those the shipped model thinks well of (the analytical heuristic
where there is no model), half are spread over its order; ATen is always there. Processes without a
GPU lower the problems and compile both sorts of kernels; one with the GPU times each problem as
soon as its kernels are there, both sorts in turn. After `--minutes` what there is is written. The
table needs no GPU.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import itertools
import json
import os
import random
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

# Inductor would start compiling processes of its own; set before it is imported.
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")

import torch

import torch_diode as td
from torch_diode.candidates.space import candidate_space
from torch_diode.collection.crew import Answered, Crew, Lost, Mark
from torch_diode.collection.kernel_compile import Job, precompile
from torch_diode.collection.kernels import KernelInfeasibleError, KernelLibrary, KernelSpec
from torch_diode.collection.launching import Launcher
from torch_diode.collection.operands import Operands, operands
from torch_diode.collection.timer import Launch, Measured, Timer
from torch_diode.files.atomic import write_text
from torch_diode.files.datasets import read_dataset, write_dataset
from torch_diode.files.shape_sets import read_shapes
from torch_diode.hardware import known
from torch_diode.heuristics.analytical import AnalyticalHeuristic
from torch_diode.heuristics.base import Heuristic
from torch_diode.model.fidelity import SIZES, agreements, as_table, by_size, size_class
from torch_diode.types.candidate import ATEN, DECOMPOSE_K, Candidate
from torch_diode.types.dataset import Dataset
from torch_diode.types.errors import DiodeError
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import BATCHED, MMShape
from torch_diode.types.timing import Timing

STATIC, SWEEP = "inductor-static", "sweep"
FILES = {STATIC: "fidelity-static.parquet", SWEEP: "fidelity-sweep.parquet"}
ROUNDS = ((float("inf"), 6), (1.3, 8))
"""All are timed often enough to be ordered, not the fastest only."""
WRONG = 3e-2
"""Of ‖out − ATen's‖ / ‖ATen's‖: a kernel given the wrong arguments is off by about 1."""
ENOUGH = 2 / 3
"""At the end, a problem with this share of its kernels compiled is timed with those."""
LAST_SECONDS = 12.0
SAVE_EVERY_S = 15.0
BIGGEST_TILE = {"float32": (2**17, 2**16), "": (2**21, 2**19)}
"""BLOCK_M × BLOCK_N × BLOCK_K of what is thought good, and of what is spread out: without tensor
cores, larger tiles take a minute to compile."""
KINDS = (
    {"op": "mm", "dtype": "bfloat16", "layout": "nt"},
    {"op": "addmm", "dtype": "bfloat16", "layout": "nt"},
    {"op": "bmm", "dtype": "bfloat16", "layout": "nn"},
    {"op": "mm", "dtype": "float32", "layout": "nt", "tf32": True},
    {"op": "mm", "dtype": "float16", "layout": "tn"},
    {"op": "baddbmm", "dtype": "bfloat16", "layout": "nn"},
    {"op": "mm", "dtype": "bfloat16", "layout": "nn"},
    {"op": "addmm", "dtype": "float32", "layout": "nt", "tf32": True, "bias": "matrix"},
    {"op": "bmm", "dtype": "float16", "layout": "nt"},
    {"op": "mm", "dtype": "float32", "layout": "nn"},
    {"op": "addmm", "dtype": "float16", "layout": "nn"},
    {"op": "mm", "dtype": "bfloat16", "layout": "nn", "odd": True},
    {"op": "baddbmm", "dtype": "float32", "layout": "nt", "tf32": True},
    {"op": "bmm", "dtype": "float32", "layout": "nn"},
)
MOST_ROOFLINE_US = 250.0


# Which problems, and which candidates of each


def drawn_problems(count: int, seed: int, hardware: Hardware) -> list[MMShape]:
    """As many of every kind and size class as of every other; any first part is balanced too."""
    found: dict[MMShape, None] = {}
    for turn in itertools.count():
        for number, kind in enumerate(KINDS):
            if len(found) == count:
                return list(found)
            size = SIZES[(turn + number) % len(SIZES)]
            source = random.Random(f"{seed} {turn} {number}")
            found[_draw(kind, size, source, hardware)] = None
    raise AssertionError


def _draw(kind: dict[str, Any], size: str, source: random.Random, hardware: Hardware) -> MMShape:
    while True:
        m, n, k = (round(2 ** source.uniform(4, 13)) for _ in range(3))
        if source.random() < 0.2:
            m = source.randint(1, 64)
        step = source.choice((128, 128, 128, 64, 16))
        if kind.get("odd"):
            m, n, k = m | 1, n | 1, k | 1
        else:
            n, k = -(-n // step) * step, -(-k // step) * step
            m = -(-m // 8) * 8 if kind["layout"][0] == "t" else m
        problem = MMShape(
            kind["op"],
            *(m, n, k),
            B=2 ** source.randint(1, 6) if kind["op"] in BATCHED else 1,
            dtype=kind["dtype"],
            transpose_a=kind["layout"][0] == "t",
            transpose_b=kind["layout"][1] == "t",
            tf32=kind.get("tf32", False),
            **({"bias": kind["bias"]} if "bias" in kind else {}),
        )
        rate = hardware.peak_tflops("tf32" if problem.tf32 else problem.dtype) * 1e6
        least = max(problem.flops / rate, problem.bytes_moved / hardware.memory_gbps / 1e3)
        if least <= MOST_ROOFLINE_US and size_class(problem, hardware) == size:
            return problem


@dataclass(frozen=True)
class Plan:
    """A problem and its candidates, ATen first."""

    problem: MMShape
    candidates: tuple[Candidate, ...]


def make_plans(
    problems: Sequence[MMShape], hardware: Hardware, heuristic: Heuristic, count: int, seed: int
) -> list[Plan]:
    """Candidates of each problem. Problems of one kind share what they can, since a sweep's
    kernel is compiled once for all of them."""
    ranked = {problem: _ranked(problem, hardware, heuristic) for problem in problems}
    kinds: dict[tuple[Any, ...], list[MMShape]] = {}
    for problem in problems:
        key = (problem.op, problem.dtype, problem.layout, problem.tf32, problem.bias)
        kinds.setdefault(key, []).append(problem)
    chosen: dict[MMShape, Plan] = {}
    for key, members in kinds.items():
        praised: Counter[Candidate] = Counter()
        for problem in members:
            praised.update(ranked[problem][: 2 * count])
        good = {c for c, _ in praised.most_common(count)}
        source = random.Random(f"{seed} {key}")
        quick = {c for p in members for c in ranked[p] if _volume(c) <= BIGGEST_TILE[_name(p)][1]}
        spread = set(source.sample(sorted(quick, key=str), min(len(quick), 3 * count // 2)))
        for problem in members:
            picked = _pick(ranked[problem], good, spread, count)
            chosen[problem] = Plan(problem, (Candidate(ATEN), *picked))
    return [chosen[problem] for problem in problems]


def _ranked(problem: MMShape, hardware: Hardware, heuristic: Heuristic) -> list[Candidate]:
    space = candidate_space(problem, hardware)
    space = space.take(~space.is_template(DECOMPOSE_K) & ~space.is_template(ATEN))
    ranking = heuristic.rank(problem, space, hardware)
    if ranking is None:
        ranking = AnalyticalHeuristic().rank(problem, space, hardware)
        assert ranking is not None
    found = [space[int(row)] for row in ranking.order]
    return [c for c in found if _volume(c) <= BIGGEST_TILE[_name(problem)][0]]


def _pick(
    ranked: Sequence[Candidate], good: set[Candidate], spread: set[Candidate], count: int
) -> list[Candidate]:
    """A sixth the very first, a third the best of those good for the kind, the rest evenly from
    the best to the worst of the spread ones."""
    picked = dict.fromkeys(ranked[: count // 6])
    for candidate in ranked:
        if len(picked) >= count // 2:
            break
        if candidate in good:
            picked[candidate] = None
    # Few of the shared ones may be able to run a small problem: then any will do.
    for allowed in (spread, set(ranked)):
        others = [c for c in ranked if c in allowed and c not in picked]
        wanted = min(count - len(picked), len(others))
        for i in range(wanted):
            picked[others[(2 * i + 1) * len(others) // (2 * wanted)]] = None
    return list(picked)


def _volume(candidate: Candidate) -> int:
    config = candidate.config
    assert config is not None
    return config.block_m * config.block_n * config.block_k


def _name(problem: MMShape) -> str:
    return "float32" if problem.dtype == "float32" and not problem.tf32 else ""


# Processes that lower and compile; no GPU there


@dataclass(frozen=True)
class Lower:
    """Have Inductor render a problem's candidates."""

    number: int
    plan: Plan


@dataclass(frozen=True)
class CompileStatic:
    """Compile one of them."""

    number: int
    kernel: Any


@dataclass(frozen=True)
class CompileSweep:
    """Compile a kernel of the sweep's."""

    job: Job


_for_life = contextlib.ExitStack()
"""Of a process: what is entered here is never left."""


def compiler(hardware: Hardware, _: Mark) -> Callable[[Any], Any]:
    """Answers the three sorts of jobs, pretending to have the chip."""
    from torch_diode.integration.lowering import pretend
    from torch_diode.integration.static_kernels import compile_static, static_kernels

    _for_life.enter_context(pretend(hardware))
    arch = int(hardware.arch.removeprefix("sm_").rstrip("af"))

    def answer(job: Any) -> Any:
        if isinstance(job, Lower):
            try:
                return static_kernels(job.plan.problem, job.plan.candidates)
            except RuntimeError as fault:
                return f"{type(fault).__name__}: {fault}"
        if isinstance(job, CompileStatic):
            return compile_static(job.kernel)
        return precompile(*job.job, arch)

    return answer


# The process that times


@dataclass(frozen=True)
class Time:
    """A problem with all its kernels compiled."""

    number: int
    plan: Plan
    kernels: tuple[Any, ...]
    specs: tuple[tuple[Candidate, KernelSpec], ...]


def bench(
    hardware: Hardware, releases: dict[str, str], seed: int, _: Mark
) -> Callable[[Time], list[Timing]]:
    """Answers problems with timings of both methods."""
    device = torch.device("cuda", torch.cuda.current_device())
    timer = Timer(device, 2 * hardware.l2_bytes, seed)

    from torch_diode.integration.static_kernels import bind_static
    from torch_diode.integration.template_source import template_source

    launcher = Launcher(KernelLibrary(template_source, hardware.units))
    generator = torch.Generator(device).manual_seed(seed)

    def answer(job: Time) -> list[Timing]:
        problem = job.plan.problem
        torch.backends.cuda.matmul.allow_tf32 = problem.tf32
        tensors = operands(problem, device, generator)
        wanted: list[tuple[str, Candidate, Callable[[], Launch]]] = []
        for kernel in job.kernels:
            make = lambda kernel=kernel: bind_static(kernel, tensors)  # noqa: E731
            wanted.append((STATIC, kernel.candidate, make))
        for candidate, spec in job.specs:
            make = lambda spec=spec: launcher.bind(spec, tensors)  # noqa: E731
            wanted.append((SWEEP, candidate, make))
        wanted += [(method, Candidate(ATEN), tensors.aten) for method in (STATIC, SWEEP)]
        ready = _checked(tensors, wanted)
        runnable = [i for i, (_, status) in enumerate(ready) if status == "ok"]
        try:
            measured = timer.measure([ready[i][0] for i in runnable], ROUNDS)  # type: ignore[misc]
        except DiodeError as fault:  # the CPU was late again and again
            print(f"{problem}: {fault}", flush=True)
            return []
        results: dict[int, Measured] = dict(zip(runnable, measured, strict=True))
        return [
            _timing(hardware.name, problem, candidate, method, status, results.get(i), releases)
            for i, ((method, candidate, _), (_, status)) in enumerate(
                zip(wanted, ready, strict=True)
            )
        ]

    return answer


def _checked(
    tensors: Operands, wanted: Sequence[tuple[str, Candidate, Callable[[], Launch]]]
) -> list[tuple[Launch | None, str]]:
    """Each kernel run once and compared with ATen's result."""
    from triton.runtime.errors import OutOfResources

    tensors.aten()()
    reference = tensors.out.float()
    scale = reference.norm()
    found: list[tuple[Launch | None, str]] = []
    for _, _, make in wanted:
        tensors.out.fill_(float("nan"))
        try:
            launch = make()
            launch()
            torch.cuda.synchronize()
        except (KernelInfeasibleError, OutOfResources):
            found.append((None, "out_of_resources"))
            continue
        except RuntimeError as fault:
            torch.cuda.synchronize()  # what broke the GPU ends this process here
            short = "out of resource" in str(fault)
            found.append((None, "out_of_resources" if short else "failed"))
            continue
        error = float((tensors.out.float() - reference).norm() / scale)
        found.append((launch, "ok" if error <= WRONG else "wrong"))
    return found


def _timing(
    hardware: str,
    problem: MMShape,
    candidate: Candidate,
    method: str,
    status: str,
    measured: Measured | None,
    releases: dict[str, str],
) -> Timing:
    common = {"status": status, "method": method, **releases}
    if measured is None:
        return Timing(hardware, problem, candidate, None, repeats=0, **common)
    taken = {"spread": measured.spread, "repeats": measured.repeats}
    return Timing(hardware, problem, candidate, measured.time_us, **taken, **common)


# The run


@dataclass
class Waiting:
    """A problem on its way to being timed."""

    plan: Plan
    specs: dict[Candidate, KernelSpec]
    kernels: list[Any] = field(default_factory=list)
    """Rendered and compiled."""
    to_compile: int = 0
    lowered: bool = False


@dataclass
class Run:
    """Hands out jobs until all problems are timed, or the time is up."""

    plans: Sequence[Plan]
    hardware: Hardware
    library: KernelLibrary
    processes: int
    deadline: float
    save: Callable[[Sequence[Timing]], None]
    timings: list[Timing] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    compiled: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        launcher = Launcher(self.library)
        self._waiting: dict[int, Waiting] = {}
        for number, plan in enumerate(self.plans):
            specs = {}
            for candidate in plan.candidates:
                if candidate.config is not None:
                    with contextlib.suppress(KernelInfeasibleError):
                        specs[candidate] = launcher.spec_for(plan.problem, candidate)
            self._waiting[number] = Waiting(plan, specs)
        self._done: dict[KernelSpec, bool] = {}
        self._asked: set[KernelSpec] = set()
        self._queue: deque[Any] = deque(Lower(n, w.plan) for n, w in self._waiting.items())
        self._at_bench: set[int] = set()
        self._saved = time.monotonic()

    def specs(self) -> set[KernelSpec]:
        """The sweep's kernels, each once."""
        return {spec for waiting in self._waiting.values() for spec in waiting.specs.values()}

    def go(self, benches: Crew[Time, list[Timing]]) -> None:
        """Until done or out of time; what there is is saved in any case."""
        work = _with(compiler, self.hardware)
        with Crew[Any, Any]([work] * self.processes) as compilers:
            try:
                compilers.start()
                while self._waiting and time.monotonic() < self.deadline:
                    self._hand_out(compilers, benches)
                    left = self.deadline - time.monotonic()
                    wait(compilers.handles() + benches.handles(), min(max(left, 0.0), 1.0))
                    for event in compilers.read():
                        self._compiled_one(event)
                    for event in benches.read():
                        self._timed_one(event)
                    if time.monotonic() - self._saved > SAVE_EVERY_S:
                        self.save(self.timings)
                        self._saved = time.monotonic()
            finally:
                self.save(self.timings)

    def _hand_out(self, compilers: Crew[Any, Any], benches: Crew[Time, list[Timing]]) -> None:
        for member in compilers.idle():
            if self._queue:
                compilers.give(member, [self._queue.popleft()])
        ready = next((n for n, w in self._waiting.items() if self._is_ready(n, w)), None)
        if ready is not None and benches.idle():
            waiting = self._waiting[ready]
            specs = [(c, s) for c, s in waiting.specs.items() if self._done.get(s)]
            self._at_bench.add(ready)
            job = Time(ready, waiting.plan, tuple(waiting.kernels), tuple(specs))
            benches.give(benches.idle()[0], [job])

    def _is_ready(self, number: int, waiting: Waiting) -> bool:
        if not waiting.lowered or number in self._at_bench:
            return False
        missing = sum(spec not in self._done for spec in waiting.specs.values())
        if not waiting.to_compile and not missing:
            return True
        if time.monotonic() < self.deadline - LAST_SECONDS:
            return False
        wanted = len(waiting.plan.candidates) - 1
        return min(len(waiting.kernels), len(waiting.specs) - missing) >= ENOUGH * wanted

    def _compiled_one(self, event: Answered[Any, Any] | Lost[Any]) -> None:
        job = event.job
        if isinstance(event, Lost):
            self._queue.extendleft(reversed(event.waiting))
            self.faults[f"compiler {event.reason}"] += 1
        answer = event.answer if isinstance(event, Answered) else "lost"
        if isinstance(job, CompileSweep):
            spec = job.job[1]
            self._done[spec] = not isinstance(answer, str) and not answer.error
            self.compiled[SWEEP] += 1
        elif isinstance(job, CompileStatic) and job.number in self._waiting:
            waiting = self._waiting[job.number]
            waiting.to_compile -= 1
            self.compiled[STATIC] += 1
            if answer == "":
                waiting.kernels.append(job.kernel)
            else:
                self.faults[answer.splitlines()[0][:100]] += 1
        elif isinstance(job, Lower):
            self._lowered(job, answer)

    def _lowered(self, job: Lower, answer: Any) -> None:
        if isinstance(answer, str):
            self.faults[f"lowering: {answer.splitlines()[0][:100]}"] += 1
            del self._waiting[job.number]
            return
        waiting = self._waiting[job.number]
        waiting.lowered = True
        waiting.to_compile = len(answer)
        self._queue.extend(CompileStatic(job.number, kernel) for kernel in answer)
        new = [s for s in dict.fromkeys(waiting.specs.values()) if s not in self._asked]
        self._asked.update(new)
        self._queue.extend(CompileSweep(one) for one in self.library.jobs(new))

    def _timed_one(self, event: Answered[Time, list[Timing]] | Lost[Time]) -> None:
        if event.job is None:
            raise DiodeError(f"bench: {event.reason}" if isinstance(event, Lost) else "bench")
        if isinstance(event, Answered):
            self.timings += event.answer
            for timing in event.answer:
                if timing.status != "ok":
                    self.faults[f"{timing.method} {timing.status}"] += 1
        else:
            self.faults[f"bench {event.reason} at {event.job.plan.problem}"] += 1
        del self._waiting[event.job.number]
        self._at_bench.discard(event.job.number)
        done = len(self.plans) - len(self._waiting)
        if done % 10 == 0 or not self._waiting:
            left = self.deadline - time.monotonic()
            print(
                f"{done}/{len(self.plans)} problems, {self.compiled[STATIC]:,} static and "
                f"{self.compiled[SWEEP]:,} sweep kernels compiled, {left:.0f} s left",
                flush=True,
            )


def _with(function: Callable[..., Any], *first: Any) -> Callable[[Mark], Any]:
    return lambda mark: function(*first, mark)


def best_heuristic(hardware: Hardware) -> Heuristic:
    """The shipped model, or the analytical heuristic."""
    try:
        return td.ModelHeuristic(td.load_model("matmul", hardware=hardware))
    except DiodeError as fault:
        print(f"analytical heuristic, since {fault}")
        return AnalyticalHeuristic()


def report(static: Path, sweep: Path, output: Path | None = None) -> None:
    """Print the table of two files; write it as JSON, too, where asked to."""
    first, second = read_dataset(static), read_dataset(sweep)
    hardware = known(first.texts("hardware")[0])
    found = agreements(first, second)
    rows = by_size(found, hardware)
    print(f"{hardware.name}, Inductor's fixed-size kernels against the sweep's")
    print(as_table(rows))
    print("least faithful:")
    for one in sorted(found, key=lambda a: -a.regret)[:5]:
        print(
            f"  regret {one.regret:.3f}  rank corr. {one.rank_correlation:.3f}  "
            f"{size_class(one.problem, hardware):6}  {one.problem}"
        )
    if output is not None:
        data = {"hardware": hardware.name, "sizes": [row.to_dict() for row in rows]}
        write_text(output, json.dumps(data, indent=1) + "\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, default=Path(), help="directory of the two files")
    parser.add_argument("--problems", type=int, default=104)
    parser.add_argument("--shapes", type=Path, help="shape set to take problems from")
    parser.add_argument("--configs", type=int, default=30, help="of each problem, besides ATen")
    parser.add_argument("--minutes", type=float, default=3.2, help="then write what there is")
    parser.add_argument("--processes", type=int, default=max((os.cpu_count() or 2) - 1, 1))
    parser.add_argument("--hardware", default="nvidia-h200")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--analyse", nargs=2, type=Path, metavar=("STATIC", "SWEEP"))
    parser.add_argument("--json", type=Path, help="write the table there, too")
    return parser


@contextlib.contextmanager
def own_caches() -> Iterator[None]:
    """Kernels are compiled for this run and thrown away: nobody's caches grow, or help."""
    with tempfile.TemporaryDirectory(prefix="fidelity-") as folder:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = f"{folder}/inductor"
        os.environ["TRITON_CACHE_DIR"] = f"{folder}/triton"
        yield


def measure(given: argparse.Namespace, start: float) -> None:
    """Plan, run, and write the two files as it goes."""
    hardware = known(given.hardware)
    releases = installed("torch", "triton")
    # First of all: Inductor, once imported, may have asked CUDA something, and what is forked
    # after that cannot use the GPU.
    with Crew[Time, list[Timing]]([_with(bench, hardware, releases, given.seed)]) as benches:
        benches.start()
        run = make_run(given, hardware, start)
        print(
            f"{len(run.plans)} problems, {sum(len(p.candidates) - 1 for p in run.plans):,} "
            f"configs, {len(run.specs()):,} sweep kernels; {time.monotonic() - start:.0f} s so far",
            flush=True,
        )
        run.go(benches)
    for fault, count in run.faults.most_common(12):
        print(f"{count:6,}  {fault}")
    done = len({timing.problem for timing in run.timings})
    print(f"{done} problems timed, {len(run.timings):,} timings, {time.monotonic() - start:.0f} s")


def make_run(given: argparse.Namespace, hardware: Hardware, start: float) -> Run:
    """Which problems with which candidates, and where to write."""
    from torch_diode.integration import registration
    from torch_diode.integration.template_source import template_source

    torch.set_num_threads(1)  # threads would not survive the fork
    registration.disable()
    if given.shapes:
        problems = list(read_shapes(given.shapes).problems)
        random.Random(given.seed).shuffle(problems)
        problems = problems[: given.problems]
    else:
        problems = drawn_problems(given.problems, given.seed, hardware)
    plans = make_plans(problems, hardware, best_heuristic(hardware), given.configs, given.seed)
    today = {"collected": (time.strftime("%Y-%m-%d"),), "seed": (str(given.seed),)}

    def save(timings: Sequence[Timing]) -> None:
        for method, name in FILES.items():
            chosen = [timing for timing in timings if timing.method == method]
            if chosen:
                write_dataset(Dataset.from_timings(chosen, today), given.output / name)

    library = KernelLibrary(template_source, hardware.units)
    deadline = start + 60 * given.minutes
    return Run(plans, hardware, library, given.processes, deadline, save)


def installed(*names: str) -> dict[str, str]:
    """Releases, read without importing."""
    return {name: importlib.metadata.version(name).partition("+")[0] for name in names}


def seconds_alive() -> float:
    """How long ago this process was started: importing torch is part of the time given."""
    started = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - started / os.sysconf("SC_CLK_TCK")


def main() -> int:
    """Measure where there is a GPU; the table in any case."""
    given = _parser().parse_args()
    try:
        if given.analyse:
            report(*given.analyse, given.json)
            return 0
        if not torch.backends.cuda.is_built():
            print("skipped: needs a GPU, and this torch is built without CUDA")
            return 0
        with own_caches():
            measure(given, time.monotonic() - seconds_alive())
        report(*(given.output / FILES[method] for method in (STATIC, SWEEP)), given.json)
    except DiodeError as fault:
        print(f"error: {fault}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
