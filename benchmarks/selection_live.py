"""The kernels torch-diode chooses, against ATen, max-autotune and the best known. Needs a GPU.

    python benchmarks/selection_live.py --minutes 9.5 [--problems 150] [--parts clean,tuned,cold]
    python benchmarks/selection_live.py --dry --problems 4      # no GPU: made-up times

Problems never trained on, half from the validation set (log-normal sizes; its sweep over the
complete space names the best), half from real models. Three parts, each adding to the same file,
and an existing file of the same seed is gone on with:

clean  Inductor's own fixed-size kernels of what torch-diode chooses in plain mode, of the model's
       and the sweep's best, and of all configs max-autotune DEFAULT lists, compiled by processes
       without a GPU and timed together with ATen: GPU time, cold L2, launches left out, results
       checked. The best known is the fastest of them all.
tuned  What max-autotune picks by its own benchmark, plain and with torch-diode, in a real
       `torch.compile` on an otherwise idle machine, its kernels compiled before.
cold   Seconds of real compiles with empty caches, of a few problems, four ways.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

# Asked in the usual way whether there is a GPU, torch forbids forked processes to use it.
os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
# torch-diode is on where this says so, and nowhere else.
os.environ["TORCH_DIODE"] = "0"

import numpy as np
import torch
from _live import RESULTS, as_table, attempted, made_with, save, seconds_alive
from _selection import (
    DEFAULT,
    DIODE,
    PLAIN,
    TUNED,
    Posed,
    Row,
    posed_problems,
    summary,
    table_rows,
    worst,
)

from torch_diode.candidates.resources import worth_compiling
from torch_diode.candidates.space import candidate_space
from torch_diode.collection.crew import Answered, Crew, Lost, Mark
from torch_diode.collection.operands import Operands, operands
from torch_diode.collection.timer import Launch, Measured, Timer
from torch_diode.hardware import known
from torch_diode.heuristics.analytical import AnalyticalHeuristic
from torch_diode.heuristics.base import Heuristic
from torch_diode.types.candidate import ATEN, DECOMPOSE_K, Candidate
from torch_diode.types.candidates import Candidates
from torch_diode.types.errors import DiodeError, MissingPartError
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape

PARTS = {"clean": 0.6, "tuned": 0.27, "cold": 0.13}
"""And the share of the time each may take."""
PRAISED, ANALYTICAL = 10, 3
WRONG = 3e-2
ROUNDS = ((float("inf"), 4), (1.3, 8))
SAVE_EVERY_S = 10.0
LAST_SECONDS = 10.0
LISTING = {"max_autotune": True, "max_autotune_gemm_backends": "ATEN,TRITON"}
AUTOTUNE = "max-autotune-no-cudagraphs"
_NO_CACHES = {"force_disable_caches": True, "autotune_local_cache": False}
"""Of graphs and timings; Triton's own cache of kernels stays."""


# Processes without a GPU: what is chosen and listed, rendered and compiled


@dataclass(frozen=True)
class Pose:
    """Decide and render a problem."""

    number: int
    posed: Posed


@dataclass(frozen=True)
class Compile:
    """Compile one kernel of a problem."""

    number: int
    kernel: Any


@dataclass(frozen=True)
class Choices:
    """What torch-diode chose in plain mode and max-autotune lists; all of it rendered."""

    diode: Candidate
    decision_us: float
    default: tuple[Candidate, ...]
    kernels: tuple[Any, ...]


def shipped(hardware: Hardware) -> Heuristic:
    from torch_diode.integration import defaults
    from torch_diode.integration.settings import Settings

    found = defaults.default_heuristic(hardware, Settings(model=defaults.SHIPPED))
    if found is None:
        raise MissingPartError(f"{hardware.name}: {defaults.NO_MODEL}; train one first")
    return found


@contextlib.contextmanager
def precision(problem: MMShape) -> Iterator[None]:
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = problem.tf32
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


def choices_of(posed: Posed, hardware: Hardware, heuristic: Heuristic) -> Choices:
    """Through Inductor's real lowering, inside `pretend`."""
    from torch._inductor.virtualized import V

    from torch_diode.integration.choices import DiodeInductorChoices
    from torch_diode.integration.default_configs import ListRecorder, inputs_of
    from torch_diode.integration.lowering import lower
    from torch_diode.integration.static_kernels import static_kernels

    problem = posed.problem
    op, inputs = getattr(torch, problem.op), inputs_of(problem)
    handler, recorder = DiodeInductorChoices(heuristic), ListRecorder()
    with precision(problem):
        with V.set_choices_handler(handler):
            lower(op, inputs, generate=False)
        with V.set_choices_handler(recorder):
            lower(op, inputs, LISTING, generate=False)
    decisions = list(handler.decider.record)
    chosen = decisions[-1].winner.candidate if decisions else Candidate(ATEN)
    listed = [c for c in recorder.candidates if c.config is not None]
    wanted = dict.fromkeys([*praised(problem, hardware, heuristic), *posed.swept, *listed])
    quick = _quick(problem, list(wanted))
    asked = dict.fromkeys([chosen, *quick] if chosen.config is not None else quick)
    return Choices(
        chosen,
        decisions[-1].microseconds if decisions else 0.0,
        tuple(listed),
        tuple(static_kernels(problem, list(asked))),
    )


def praised(problem: MMShape, hardware: Hardware, heuristic: Heuristic) -> list[Candidate]:
    """The first of the model and of the analytical heuristic; no TMA, as in a plain compile."""
    space = candidate_space(problem, hardware)
    space = space.take(~space.is_template(DECOMPOSE_K) & ~space.is_template(ATEN))
    space = space.take(~space.is_template("triton::mm_persistent_tma"))
    found: list[Candidate] = []
    for judge, count in ((heuristic, PRAISED), (AnalyticalHeuristic(), ANALYTICAL)):
        ranking = judge.rank(problem, space, hardware)
        if ranking is not None:
            found += [space[int(row)] for row in ranking.order[:count]]
    return found


def _quick(problem: MMShape, wanted: Sequence[Candidate]) -> list[Candidate]:
    if not wanted:
        return []
    return list(Candidates.of(wanted).take(worth_compiling(Candidates.of(wanted), problem)))


_for_life = contextlib.ExitStack()
"""Of a process: what is entered here is never left."""


def compiler(hardware: Hardware, _: Mark) -> Callable[[Any], Any]:
    """Answers Pose and Compile, pretending to have the chip."""
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    from torch_diode.integration.lowering import pretend
    from torch_diode.integration.static_kernels import compile_static

    _for_life.enter_context(pretend(hardware))
    heuristic = shipped(hardware)

    def answer(job: Any) -> Any:
        if isinstance(job, Compile):
            return compile_static(job.kernel)
        found, fault = attempted(lambda: choices_of(job.posed, hardware, heuristic))
        return found if found is not None else fault

    return answer


# The process with the GPU


@dataclass(frozen=True)
class Clean:
    """Time a problem's compiled kernels."""

    number: int
    problem: MMShape
    diode: Candidate
    kernels: tuple[Any, ...]


@dataclass(frozen=True)
class Tune:
    """Have max-autotune pick, plain and with torch-diode; time picks not among those known."""

    number: int
    problem: MMShape
    known: frozenset[str]


@dataclass(frozen=True)
class Cold:
    """Compile four ways, from nothing."""

    number: int
    problem: MMShape


class Bench:
    """All that is done on the GPU."""

    def __init__(self, hardware: Hardware, seed: int) -> None:
        self.device = torch.device("cuda", torch.cuda.current_device())
        self.timer = Timer(self.device, 2 * hardware.l2_bytes, seed)
        self.generator = torch.Generator(self.device).manual_seed(seed)
        self.heuristic = shipped(hardware)
        self._warm = False

    def answer(self, job: Any) -> Row:
        """Whatever is asked."""
        with precision(job.problem):
            tensors = operands(job.problem, self.device, self.generator)
            if isinstance(job, Clean):
                return self.clean(job, tensors)
            if isinstance(job, Tune):
                return self.tune(job, tensors)
            return self.cold(tensors)

    def clean(self, job: Clean, tensors: Operands) -> Row:
        """Times of all that run and are right; the reason for each that is not."""
        from torch_diode.integration.static_kernels import bind_static

        makers: dict[str, Callable[[], Launch]] = {ATEN: tensors.aten}
        for kernel in job.kernels:
            makers[str(kernel.candidate)] = lambda kernel=kernel: bind_static(kernel, tensors)
        times, faults = self._timed(tensors, makers, {ATEN, str(job.diode)})
        return {"times": times, "faults": faults}

    def _timed(
        self, tensors: Operands, makers: dict[str, Callable[[], Launch]], always: set[str]
    ) -> tuple[dict[str, tuple[float, float]], dict[str, str]]:
        launches, faults = checked(tensors, makers)
        calls, names = list(launches.values()), list(launches)
        first = self.timer.measure(calls, ROUNDS)
        wanted = [i for i, name in enumerate(names) if name in always]
        found = self.timer.refine(calls, first, wanted)
        return {n: (m.time_us, noise_of(m)) for n, m in zip(names, found, strict=True)}, faults

    def tune(self, job: Tune, tensors: Operands) -> Row:
        """Both picks; kernels come from caches, timings and graphs do not."""
        import torch._inductor.config as inductor_config

        row: Row = {"ratios": {}}
        with inductor_config.patch(_NO_CACHES):
            for method in (DEFAULT, TUNED):
                row[method], pick = self._autotuned(tensors, method)
                if pick is not None and str(pick) not in {*job.known, *row["ratios"]}:
                    ratio = self._over_aten(tensors, pick)
                    if ratio is not None:
                        row["ratios"][str(pick)] = ratio
        return row

    def _autotuned(self, tensors: Operands, method: str) -> tuple[Row, Candidate | None]:
        from torch_diode.integration.feedback import add_feedback, candidate_of

        heard: list[dict[Any, float]] = []
        undo = add_feedback(lambda timings, *_: heard.append(dict(timings)))
        try:
            seconds, _ = self._compile(tensors, method)
        finally:
            undo()
        timings = {c: t for each in heard for c, t in each.items() if np.isfinite(t)}
        pick = candidate_of(min(timings, key=timings.__getitem__)) if timings else Candidate(ATEN)
        name = str(pick) if pick is not None else "other"
        return {"pick": name, "benchmarked": len(timings), "compile_s": round(seconds, 3)}, pick

    def _over_aten(self, tensors: Operands, candidate: Candidate) -> tuple[float, float] | None:
        """Of a pick the clean part did not have: its time over ATen's."""
        from torch_diode.collection.splits import split_launch
        from torch_diode.integration.static_kernels import bind_static, static_kernels

        name, makers = str(candidate), {ATEN: tensors.aten}
        if candidate.template == DECOMPOSE_K:
            makers[name] = lambda: split_launch(tensors, candidate.split_k)
        else:
            for kernel in static_kernels(tensors.problem, [candidate]):
                makers[name] = lambda kernel=kernel: bind_static(kernel, tensors)
        times, _ = self._timed(tensors, makers, {ATEN, name})
        if name not in times or ATEN not in times:
            return None
        return times[name][0] / times[ATEN][0], times[name][1] + times[ATEN][1]

    def cold(self, tensors: Operands) -> Row:
        """Seconds from empty caches; and whether the code holds what was decided."""
        from torch._inductor.utils import fresh_cache

        methods = (PLAIN, DIODE, TUNED, DEFAULT)
        if not self._warm:
            # The first compile of a process pays for imports, the model, and helper processes.
            small = MMShape("mm", 128, 256, 512)
            for method in methods:
                with fresh_cache():
                    self._compile(operands(small, self.device, self.generator), method)
            self._warm = True
        row: Row = {}
        for method in methods:
            with fresh_cache():
                seconds, codes = self._compile(tensors, method)
            row[method] = {"compile_s": round(seconds, 4), "configs": configs_in(codes)}
        return {"cold": row}

    def _compile(self, tensors: Operands, method: str) -> tuple[float, list[str]]:
        from torch._inductor.utils import run_and_get_code

        from torch_diode.integration import registration

        given = [t for t in (tensors.bias, tensors.a, tensors.b) if t is not None]
        with contextlib.ExitStack() as stack:
            registration.disable()
            if method in (DIODE, TUNED):
                stack.enter_context(registration.using(self.heuristic))
            torch.compiler.reset()
            fn = torch.compile(
                getattr(torch, tensors.problem.op),
                mode=AUTOTUNE if method in (TUNED, DEFAULT) else None,
                dynamic=False,
            )
            start = time.perf_counter()
            _, codes = run_and_get_code(fn, *given)
            torch.cuda.synchronize()
            return time.perf_counter() - start, codes


def noise_of(measured: Measured) -> float:
    """Half the width of a time's 95% interval, as a fraction of it."""
    return round(3.17 * measured.spread / max(measured.repeats, 1) ** 0.5, 5)


def checked(
    tensors: Operands, makers: dict[str, Callable[[], Launch]]
) -> tuple[dict[str, Launch], dict[str, str]]:
    """What runs and gives ATen's result, and why the others do not."""
    from triton.runtime.errors import OutOfResources

    tensors.aten()()
    reference = tensors.out.float()
    scale = reference.norm()
    launches: dict[str, Launch] = {}
    faults: dict[str, str] = {}
    for name, make in makers.items():
        tensors.out.fill_(float("nan"))
        try:
            launch = make()
            launch()
            torch.cuda.synchronize()
        except (OutOfResources, RuntimeError) as fault:
            torch.cuda.synchronize()  # what broke the GPU ends this process here
            faults[name] = f"{type(fault).__name__}: {fault}".splitlines()[0][:120]
            continue
        error = float((tensors.out.float() - reference).norm() / scale)
        if error <= WRONG:
            launches[name] = launch
        else:
            faults[name] = f"wrong: off by {error:.2g}"
    return launches, faults


def configs_in(codes: Sequence[str]) -> list[str]:
    """The configs of matmul templates in generated code, as block sizes, stages and warps."""
    found = []
    for kernel in re.findall(r"'''(.*?)'''", "\n".join(codes), re.S):
        sizes = dict(re.findall(r"(BLOCK_[MNK]).*?=\s*(\d+)\s*$", kernel, re.M))
        launch = re.search(r"num_stages=(\d+),\s*num_warps=(\d+)", kernel)
        if "triton_tem" in kernel and len(sizes) == 3 and launch:
            blocks = "x".join(sizes[f"BLOCK_{name}"] for name in "MNK")
            found.append(f"{blocks} s{launch[1]} w{launch[2]}")
    return found


def bench(hardware: Hardware, seed: int, _: Mark) -> Callable[[Any], Row]:
    """Answers Clean, Tune and Cold."""
    own = Bench(hardware, seed)

    def answer(job: Any) -> Row:
        found, fault = attempted(lambda: own.answer(job))
        torch.cuda.synchronize()  # what broke the GPU ends this process here
        return found if found is not None else {"fault": f"{type(job).__name__}: {fault}"}

    return answer


# Both without a GPU, to try the rest out


def dry_compiler(hardware: Hardware, mark: Mark) -> Callable[[Any], Any]:
    """Decides and renders as the real one, and compiles but one kernel."""
    real = compiler(hardware, mark)
    compiled: list[str] = []

    def answer(job: Any) -> Any:
        if isinstance(job, Compile) and compiled:
            return ""
        found = real(job)
        if isinstance(job, Compile):
            compiled.append(str(job.kernel.candidate))
        return found

    return answer


def dry_bench(hardware: Hardware, _: int, __: Mark) -> Callable[[Any], Row]:
    """Answers with the times the model predicts."""
    heuristic = shipped(hardware)

    def answer(job: Any) -> Row:
        if isinstance(job, Cold):
            seconds = ((PLAIN, 0.1), (DIODE, 0.2), (TUNED, 1.0), (DEFAULT, 6.0))
            return {"cold": {method: {"compile_s": taken} for method, taken in seconds}}
        if isinstance(job, Tune):
            names = sorted(job.known)
            return {
                "ratios": {"triton::unknown": (1.1, 0.01)},
                DEFAULT: {"pick": "triton::unknown", "benchmarked": len(names)},
                TUNED: {"pick": names[0], "benchmarked": 3},
            }
        space = Candidates.of([Candidate(ATEN), *(k.candidate for k in job.kernels)])
        ranking = heuristic.rank(job.problem, space, hardware)
        times = ranking.predicted_us if ranking is not None else np.arange(1.0, len(space) + 1)
        named = zip(map(str, space), times.tolist(), strict=True)
        return {"times": {name: (taken, 0.01) for name, taken in named}, "faults": {}}

    return answer


# The run


@dataclass
class Pending:
    """A problem on its way to being timed."""

    choices: Choices | None = None
    compiled: list[Any] = field(default_factory=list)
    missing: int = 0


@dataclass
class Run:
    """Hands out jobs, part by part, and keeps what comes of them."""

    problems: Sequence[Posed]
    rows: dict[str, Row]
    store: Callable[[], None]
    faults: Counter[str] = field(default_factory=Counter)
    _saved: float = 0.0

    def row(self, number: int) -> Row:
        """What is known of a problem."""
        posed = self.problems[number]
        start = {"problem": posed.problem.key, "set": posed.origin, "swept": bool(posed.swept)}
        return self.rows.setdefault(posed.problem.key, start)

    def clean(
        self, benches: Crew[Any, Row], works: Sequence[Callable[[Mark], Any]], deadline: float
    ) -> None:
        """Compile on all cores, time what is ready; at the end also what is nearly so."""
        pending = {n: Pending() for n in range(len(self.problems)) if "times" not in self.row(n)}
        queue: deque[Any] = deque(Pose(n, self.problems[n]) for n in pending)
        at_bench: set[int] = set()
        with Crew[Any, Any](list(works)) as crew:
            crew.start()
            while pending and time.monotonic() < deadline:
                for member in crew.idle():
                    if queue:
                        crew.give(member, [queue.popleft()])
                late = time.monotonic() > deadline - LAST_SECONDS
                ready = next((n for n in pending if _is_ready(pending[n], late)), None)
                if ready is not None and not at_bench and benches.idle():
                    at_bench.add(ready)
                    self._give_clean(benches, ready, pending[ready])
                wait(crew.handles() + benches.handles(), 0.5)
                for event in crew.read():
                    self._compiled(event, pending, queue)
                for event in benches.read():
                    self._take(event, pending, at_bench)
            self._drain(benches, pending, at_bench, deadline + 5)
        self.store()

    def _give_clean(self, benches: Crew[Any, Row], number: int, one: Pending) -> None:
        assert one.choices is not None
        job = Clean(number, self.problems[number].problem, one.choices.diode, tuple(one.compiled))
        benches.give(benches.idle()[0], [job])

    def _compiled(self, event: Any, pending: dict[int, Pending], queue: deque[Any]) -> None:
        job = event.job
        if isinstance(event, Lost):
            queue.extendleft(reversed(event.waiting))
            self.faults[f"compiler: {event.reason}"] += 1
        answer = event.answer if isinstance(event, Answered) else "lost"
        if job is None or job.number not in pending:
            return
        one = pending[job.number]
        if isinstance(job, Compile):
            one.missing -= 1
            if answer == "":
                one.compiled.append(job.kernel)
            else:
                self.faults[str(answer).splitlines()[0][:100]] += 1
        elif isinstance(answer, Choices):
            one.choices, one.missing = answer, len(answer.kernels)
            # In front: a problem begun is finished before the next is.
            chosen = sorted(answer.kernels, key=lambda k: k.candidate != answer.diode)
            queue.extendleft(Compile(job.number, kernel) for kernel in reversed(chosen))
            row = self.row(job.number)
            row["diode"], row["decision_us"] = str(answer.diode), round(answer.decision_us, 1)
            row["listed"] = len(answer.default)
        else:
            self.faults[f"lowering: {str(answer).splitlines()[0][:100]}"] += 1
            del pending[job.number]

    def _take(self, event: Any, pending: dict[int, Any], at_bench: set[int]) -> None:
        if event.job is None:
            raise DiodeError(f"bench: {getattr(event, 'reason', 'ended')}")
        number = event.job.number
        at_bench.discard(number)
        pending.pop(number, None)
        if isinstance(event, Lost):
            self.faults[f"bench: {event.reason}"] += 1
            return
        if "fault" in event.answer:
            self.faults[event.answer["fault"]] += 1
        self._put(self.row(number), event.answer)
        if time.monotonic() - self._saved > SAVE_EVERY_S:
            self.store()
            self._saved = time.monotonic()

    @staticmethod
    def _put(row: Row, answer: Row) -> None:
        """The part's results into the problem's row."""
        for name, (ratio, noise) in answer.pop("ratios", {}).items():
            if ATEN in row.get("times", {}):
                row["times"][name] = (ratio * row["times"][ATEN][0], noise)
        row.update(answer)

    def _drain(
        self, benches: Crew[Any, Row], pending: dict[int, Any], at_bench: set[int], until: float
    ) -> None:
        while at_bench and time.monotonic() < until:
            for event in benches.read(0.5):
                self._take(event, pending, at_bench)

    def one_by_one(self, benches: Crew[Any, Row], jobs: Sequence[Any], deadline: float) -> None:
        """The bench alone on an idle machine."""
        at_bench: set[int] = set()
        for job in jobs:
            if time.monotonic() > deadline:
                break
            at_bench.add(job.number)
            benches.give(benches.idle()[0], [job])
            self._drain(benches, {}, at_bench, deadline + 30)
            if at_bench:
                self.faults[f"{type(job).__name__}: unfinished"] += 1
                break
        self.store()


def _is_ready(one: Pending, late: bool) -> bool:
    if one.choices is None:
        return False
    if not one.missing:
        return True
    has = {kernel.candidate for kernel in one.compiled}
    chosen = one.choices.diode
    return late and len(has) >= 8 and (chosen.config is None or chosen in has)


def measure(given: argparse.Namespace, hardware: Hardware, store: Any, rows: Any) -> Run:
    start = time.monotonic() - seconds_alive()
    parts = [name for name in PARTS if name in given.parts.split(",")]
    torch.set_num_threads(1)  # threads would not survive the fork
    # First of all: Inductor, once imported, may have asked CUDA something, and what is forked
    # after that cannot use the GPU.
    timing, compiling = (dry_bench, dry_compiler) if given.dry else (bench, compiler)
    with Crew[Any, Row]([lambda mark: timing(hardware, given.seed, mark)]) as benches:
        benches.start()
        run = Run(posed_problems(given.problems, given.seed, hardware), rows, store)
        left = 60 * given.minutes - (time.monotonic() - start) - 5
        total = sum(PARTS[name] for name in parts)
        for name in parts:
            deadline = time.monotonic() + left * PARTS[name] / total
            begun = time.monotonic()
            if name == "clean":
                works = [lambda mark: compiling(hardware, mark)] * given.processes
                run.clean(benches, works, deadline)
            else:
                run.one_by_one(benches, jobs_of(name, run, given.cold), deadline)
            spent = time.monotonic() - begun
            left, total = left - spent, total - PARTS[name]
            print(f"{name}: {spent:.0f} s", flush=True)
    return run


def jobs_of(part: str, run: Run, cold: int) -> list[Any]:
    """What is left of a part, in order."""
    jobs: list[Any] = []
    for number, posed in enumerate(run.problems):
        row = run.row(number)
        if part == "tuned" and "times" in row and DEFAULT not in row:
            jobs.append(Tune(number, posed.problem, frozenset(row["times"])))
        if part == "cold" and len(jobs) < cold and "cold" not in row:
            jobs.append(Cold(number, posed.problem))
    return jobs


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--problems", type=int, default=150)
    parser.add_argument("--minutes", type=float, default=9.5, help="then stop with what there is")
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--cold", type=int, default=12, help="problems of the cold part")
    parser.add_argument("--processes", type=int, default=max((os.cpu_count() or 2) - 1, 1))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--hardware", default="nvidia-h200")
    parser.add_argument("--cache", type=Path, help="folder of compiled kernels to keep and reuse")
    parser.add_argument("--dry", action="store_true", help="without a GPU, with made-up times")
    parser.add_argument("--output", type=Path, default=RESULTS / "selection_live.json")
    given = parser.parse_args()
    if not given.dry and not torch.backends.cuda.is_built():
        print("skipped: needs a GPU, and this torch is built without CUDA")
        return 0
    hardware = known(given.hardware)
    head = {**made_with(hardware.name, given.seed), "dry": given.dry}
    rows: dict[str, Row] = {}
    if given.output.exists():
        before = json.loads(given.output.read_text())
        if all(before.get(k) == head.get(k) for k in ("seed", "gpu", "torch", "dry")):
            rows = {row["problem"]: row for row in before["rows"]}

    def store() -> None:
        kept = [row for row in rows.values() if "times" in row or "cold" in row]
        save(given.output, {**head, "summary": summary(kept), "rows": kept})

    try:
        with tempfile.TemporaryDirectory(prefix="selection-") as folder:
            caches = given.cache or Path(folder)
            os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(caches / "inductor")
            os.environ["TRITON_CACHE_DIR"] = str(caches / "triton")
            run = measure(given, hardware, store, rows)
    except DiodeError as fault:
        print(f"error: {fault}", file=sys.stderr)
        return 2
    show(list(rows.values()), run.faults)
    return 0


def show(rows: list[Row], faults: Counter[str]) -> None:
    found = summary([row for row in rows if "times" in row or "cold" in row])
    print(as_table(table_rows(found)))
    for name in ("kernels benchmarked", "compile seconds"):
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
