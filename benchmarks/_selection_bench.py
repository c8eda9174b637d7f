"""GPU process of the live selection benchmark: clean times of compiled kernels, max-autotune's
picks, and real compiles from empty caches."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from _live import shipped
from _selection import DEFAULT, DIODE, NO_MATMUL, PLAIN, TUNED, Row

from torch_diode.candidates.space import canonical_candidate
from torch_diode.collection.kernels.operands import Operands, operands, tf32_precision
from torch_diode.collection.timers.cuda import CudaTimer
from torch_diode.collection.timers.timer import Launch, half_width
from torch_diode.collection.workers.pool import ProgressMarker
from torch_diode.types.candidate import ATEN, DECOMPOSE_K, Candidate
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape
from workflows.measuring.jobs import catch_job_errors
from workflows.measuring.verify_kernels import verify_kernels

ROUNDS = ((float("inf"), 4), (1.3, 8))
AUTOTUNE = "max-autotune-no-cudagraphs"
_NO_CACHES = {"fx_graph_cache": False, "autotune_local_cache": False}
"""Of graphs and timings; Triton's own cache of kernels stays. `force_disable_caches` would put an
empty one in its place."""


@dataclass(frozen=True)
class Clean:
    """Request to time a problem's compiled kernels."""

    problem: MMShape
    diode: Candidate
    kernels: tuple[Any, ...]


@dataclass(frozen=True)
class Tune:
    """Request for max-autotune's picks, plain and with torch-diode; untimed picks are timed."""

    problem: MMShape
    known: frozenset[str]


@dataclass(frozen=True)
class Cold:
    """Request to compile four ways from empty caches."""

    problem: MMShape


def bench(hardware: Hardware, seed: int, _: ProgressMarker) -> Callable[[Any], Any]:
    """Worker that answers Clean, Tune and Cold."""
    return catch_job_errors(Bench(hardware, seed).answer, torch.cuda.synchronize)


class Bench:
    """GPU work of the benchmark."""

    def __init__(self, hardware: Hardware, seed: int) -> None:
        self.device = torch.device("cuda", torch.cuda.current_device())
        self.timer = CudaTimer(self.device, hardware.l2_bytes, seed)
        self.generator = torch.Generator(self.device).manual_seed(seed)
        self.heuristic = shipped(hardware)
        self._warm, self._turn = False, 0

    def answer(self, request: Any) -> Row:
        """Dispatch a request."""
        with tf32_precision(request.problem.tf32):
            tensors = operands(request.problem, self.device, self.generator)
            if isinstance(request, Clean):
                return self.clean(request, tensors)
            if isinstance(request, Tune):
                return self.tune(request, tensors)
            return self.cold(tensors)

    def clean(self, request: Clean, tensors: Operands) -> Row:
        """Times of all correct kernels, and the reason for each other one."""
        from workflows.measuring.static_kernels import bind_static

        makers: dict[str, Callable[[], Launch]] = {ATEN: tensors.aten}
        for kernel in request.kernels:
            makers[str(kernel.candidate)] = lambda kernel=kernel: bind_static(kernel, tensors)
        times, faults = self._timed(tensors, makers, {ATEN, str(request.diode)})
        return {"times": times, "faults": faults}

    def _timed(
        self, tensors: Operands, makers: dict[str, Callable[[], Launch]], always: set[str]
    ) -> tuple[dict[str, tuple[float, float]], dict[str, str]]:
        outcomes = dict(zip(makers, verify_kernels(tensors, list(makers.values())), strict=True))
        launches = {name: one.launch for name, one in outcomes.items() if one.launch is not None}
        faults = {name: one.reason for name, one in outcomes.items() if one.launch is None}
        calls, names = list(launches.values()), list(launches)
        first = self.timer.measure(calls, ROUNDS)
        wanted = [i for i, name in enumerate(names) if name in always]
        found = self.timer.refine(calls, first, wanted)
        pairs = zip(names, found, strict=True)
        return {name: (m.time_us, round(half_width(m), 5)) for name, m in pairs}, faults

    def tune(self, request: Tune, tensors: Operands) -> Row:
        """Both picks; kernels may come from caches, timings and graphs do not."""
        import torch._inductor.config as inductor_config

        row: Row = {"ratios": {}}
        with inductor_config.patch(_NO_CACHES):
            for method in (DEFAULT, TUNED):
                row[method], pick = self._autotuned(tensors, method)
                if pick is not None and str(pick) not in {*request.known, *row["ratios"]}:
                    ratio = self._over_aten(tensors, pick)
                    if ratio is not None:
                        row["ratios"][str(pick)] = ratio
        return row

    def _autotuned(self, tensors: Operands, method: str) -> tuple[Row, Candidate | None]:
        from torch_diode.integration.autotune.feedback import add_feedback, candidate_of

        heard: list[dict[Any, float]] = []
        undo = add_feedback(lambda timings, *_: heard.append(dict(timings)))
        try:
            seconds, codes = self._compile(tensors, method)
        finally:
            undo()
        timings = {c: t for each in heard for c, t in each.items() if np.isfinite(t)}
        if timings:
            pick = candidate_of(min(timings, key=timings.__getitem__))
            if pick is not None:  # as it was timed, where stages make no difference
                pick = canonical_candidate(pick, tensors.problem)
            name = str(pick) if pick is not None else "other"
        elif any("extern_kernels." in code for code in codes):
            pick, name = Candidate(ATEN), ATEN
        else:
            # In this mode torch decomposes a bmm with one row or column into a product and a sum.
            pick, name = None, NO_MATMUL
        return {"pick": name, "benchmarked": len(timings), "compile_s": round(seconds, 3)}, pick

    def _over_aten(self, tensors: Operands, candidate: Candidate) -> tuple[float, float] | None:
        """Time over ATen's of a pick that the clean part did not time."""
        from torch_diode.collection.kernels.split_k import split_launch
        from workflows.measuring.static_kernels import bind_static, static_kernels

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
        """Compile seconds from empty caches, and whether the code contains the decision."""
        from torch._inductor.utils import fresh_cache

        methods = (PLAIN, DIODE, TUNED, DEFAULT)
        if not self._warm:
            # The first compile of a process includes imports, the model and compile workers.
            small = MMShape("mm", 128, 256, 512)
            for method in methods:
                with fresh_cache():
                    self._compile(operands(small, self.device, self.generator), method)
            self._warm = True
        self._turn += 1
        if self._turn % 2:  # whoever goes first pays for what the problem before left running
            methods = (DIODE, PLAIN, TUNED, DEFAULT)
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


def configs_in(codes: Sequence[str]) -> list[str]:
    """Configs of matmul templates in generated code: block sizes, stages and warps."""
    found = []
    for kernel in re.findall(r"'''(.*?)'''", "\n".join(codes), re.S):
        sizes = dict(re.findall(r"(BLOCK_[MNK]).*?=\s*(\d+)\s*$", kernel, re.M))
        launch = re.search(r"num_stages=(\d+),\s*num_warps=(\d+)", kernel)
        if "triton_tem" in kernel and len(sizes) == 3 and launch:
            blocks = "x".join(sizes[f"BLOCK_{name}"] for name in "MNK")
            found.append(f"{blocks} s{launch[1]} w{launch[2]}")
    return found
