"""Decides a request of Inductor's: problem, candidates, ranking, choices."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

from torch_diode._bounded_cache import BoundedCache
from torch_diode.candidates import candidate_space
from torch_diode.heuristics import policy
from torch_diode.integration.deciding.heuristics_in_use import HeuristicsInUse
from torch_diode.integration.deciding.problem import problem_of
from torch_diode.integration.deciding.record import RUNNERS_UP, Decision, Record
from torch_diode.integration.hooks import device_hardware, torch_compat
from torch_diode.integration.hooks.fallback import (
    Abstained,
    Fallback,
    NotApplicable,
)
from torch_diode.integration.settings import Settings
from torch_diode.types.candidate import ATEN, Candidate
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.errors import DiodeError
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import OPS, MMShape
from torch_diode.types.ranking import Ranking

if TYPE_CHECKING:
    from torch_diode.integration.autotune.clean_benchmark import CleanBenchmark
    from torch_diode.integration.cpu.frozen import FrozenLinear
    from torch_diode.integration.deciding.request import ChoiceRequest

_CACHED_RANKINGS = 256


class Decider:
    """Decides requests with a heuristic, under some settings."""

    def __init__(
        self, settings: Settings, fallback: Fallback | None = None, record: Record | None = None
    ) -> None:
        self.settings = settings
        self.fallback = fallback if fallback is not None else Fallback()
        self.record = record if record is not None else Record()
        self.notes: dict[str, None] = {}
        self.heuristics = HeuristicsInUse(settings, self.fallback, self.notes)
        self._rankings: BoundedCache[Any, tuple[Candidates, Ranking]]
        self._rankings = BoundedCache(_CACHED_RANKINGS)
        self._lock = threading.Lock()
        self._clean_benchmark: CleanBenchmark | None = None

    def change(self, settings: Settings) -> None:
        """Use other settings from now on; default heuristics are loaded again."""
        with self._lock:
            self.settings = settings
            self.heuristics.change(settings)
            self._rankings = BoundedCache(_CACHED_RANKINGS)

    def release(self) -> None:
        """Uninstall the clean benchmark, if a decision installed it."""
        if self._clean_benchmark is not None:
            self._clean_benchmark.disable_for_benchmark_sets()
            self._clean_benchmark = None

    def decide(self, request: ChoiceRequest) -> list[Any] | None:
        """The choices to return to Inductor; None for its own."""
        return self.fallback.run(lambda: self._decide(request))

    def decide_frozen(self, linear: FrozenLinear) -> Candidate | None:
        """The kernel of a linear whose constant weight torch is about to pack; None for the library
        torch packs it for."""
        from torch_diode.integration.deciding.frozen_decider import decide_frozen

        return self.fallback.run(lambda: decide_frozen(self, linear))

    def _decide(self, request: ChoiceRequest) -> list[Any] | None:
        from torch_diode.integration.deciding.choice_builder import ChoiceBuilder

        start = time.perf_counter_ns()
        self._check_applicable(request)
        if request.on_cpu and (decided := self._decided_before(request)) is not None:
            return decided
        hardware = device_hardware.hardware_of(request.device)
        problem, offered, candidates = self._build_problem(request, hardware)
        ranking = self.rank(problem, candidates, hardware)
        benchmarks = self.settings.mode == "auto" and request.max_autotune
        if not benchmarks:
            check_decides_alone(ranking)
        ranking, epilogue = self._adjust(ranking, request, problem, candidates, hardware)
        observing = self.settings.mode == "observe"
        builder = ChoiceBuilder(request, offered, candidates, observing=observing)
        if benchmarks:
            count = self.settings.top or policy.benchmark_count(ranking, candidates)
            rows = policy.benchmark_set(ranking, candidates, count)
            choices: list[Any] | None = builder.several(rows)
            self._install_clean_benchmark()
        else:
            order = policy.single_choice_order(ranking, candidates)
            winner, choices = builder.single(map(int, order))
            rows = [winner]
        took_us = (time.perf_counter_ns() - start - builder.rendering_ns) / 1000
        if choices != []:
            self.record_decision(
                problem,
                hardware,
                candidates,
                ranking,
                rows,
                took_us,
                "max-autotune" if request.max_autotune else "plain",
                epilogue,
            )
        return None if observing else choices

    def _decided_before(self, request: ChoiceRequest) -> list[Any] | None:
        """The choice of a linear that was decided when its graph was frozen."""
        from torch_diode.integration.cpu import frozen

        candidate = frozen.decision_here()
        if candidate is None:
            return None
        from torch_diode.integration.deciding.choice_builder import SINGLE_CHOICE, ChoiceBuilder

        if candidate.template == ATEN:
            alone = ChoiceBuilder(request, {}, Candidates.of([candidate])).vendor_alone()
            if alone is None:
                raise NotApplicable
            return alone
        choice = request.frozen_choice_of(candidate)
        if not torch_compat.can_be_rendered(choice):
            raise DiodeError(
                f"{request.op}: got {candidate} for a frozen linear, which Inductor cannot render "
                "here; ATen runs it"
            )
        torch_compat.annotations_of(choice)[SINGLE_CHOICE] = True
        return [choice]

    def _install_clean_benchmark(self) -> None:
        from torch_diode.integration.autotune.clean_benchmark import clean_benchmark

        clean_benchmark.enable_for_benchmark_sets(self.fallback)
        self._clean_benchmark = clean_benchmark

    def _check_applicable(self, request: ChoiceRequest) -> None:
        """Raise for other ops, other devices, and calls that do not decide their matmul.

        A matmul may come in several calls. For a single choice, the call with ATen in it decides;
        for a benchmark set, those with Triton templates do, and ATen keeps its own.
        """
        if request.op not in OPS or request.device.type not in device_hardware.DEVICE_TYPES:
            raise NotApplicable
        self.check_free(request.handler)
        if not request.max_autotune:
            decides = ATEN in request.names
        elif self.settings.mode == "auto" and not request.on_cpu:
            decides = request.has_triton
        else:
            decides = ATEN in request.names or request.has_triton
        if not decides:
            raise NotApplicable

    def check_free(self, handler: Any) -> None:
        """Abstain where another handler answers, or one kernel is asked for."""
        other = torch_compat.other_hook(handler)
        if other and not self.settings.named:
            raise Abstained(f"{other} answers for matmuls, and no heuristic was named")
        if torch_compat.batch_invariant():
            raise Abstained("config.batch_invariant asks for one kernel whatever the batch")

    def _build_problem(
        self, request: ChoiceRequest, hardware: Hardware
    ) -> tuple[MMShape, dict[str, Any], Candidates]:
        self.heuristics.require(hardware)
        problem = problem_of(request.op, request.inputs)
        offered = request.offered(self.settings.tma)
        candidates = candidate_space(problem, hardware, tuple(offered))
        if not any(name != ATEN for name in candidates.templates):
            raise Abstained(f"{request.op} {problem.dtype}: only ATen is on offer")
        return problem, offered, candidates

    def rank(self, problem: MMShape, candidates: Candidates, hardware: Hardware) -> Ranking:
        """The heuristic's ranking, cached for steady heuristics; raises where it abstains."""
        heuristic = self.heuristics.require(hardware)
        key = (heuristic, problem, hardware)
        cached = self._rankings.get(key) if heuristic.steady else None
        if cached is not None and cached[0] is candidates:
            ranking: Ranking | None = cached[1]
        else:
            ranking = heuristic.rank(problem, candidates, hardware)
            if ranking is not None:
                policy.check_fits(ranking, candidates)
                if heuristic.steady:
                    self._rankings[key] = candidates, ranking
        if ranking is None:
            raise Abstained(f"{heuristic.name} abstained on {problem.op} {problem.dtype}")
        if ranking.note:
            self.notes[f"{ranking.source}: {ranking.note}"] = None
        return ranking

    def _adjust(
        self,
        ranking: Ranking,
        request: ChoiceRequest,
        problem: MMShape,
        candidates: Candidates,
        hardware: Hardware,
    ) -> tuple[Ranking, str]:
        """The ranking as compiled in this graph, and a description of the epilogue that a template
        fuses and ATen does not."""
        if request.on_cpu:
            return ranking, ""  # only library calls, and none of them fuses what follows
        from torch_diode.integration.deciding.epilogue_cost import epilogue_of, expand_bias_us

        extra, text = 0.0, ""
        bias_us = expand_bias_us(problem, hardware) if request.expands_bias else 0.0
        if self.settings.epilogues:
            from torch._inductor.virtualized import V

            # An unexpected graph must not cost the decision: it is then taken without epilogue.
            epilogue = self.fallback.run(lambda: epilogue_of(V.graph))
            if epilogue is not None:
                extra = epilogue.extra_us(hardware)
                text = f"{', '.join(dict.fromkeys(epilogue.ops))} (ATen + {extra:.1f} us)"
        adjusted = policy.adjust_for_compile(
            ranking, candidates, request.has_static_sizes, extra, bias_us
        )
        return adjusted, text if extra and adjusted is not ranking else ""

    def record_decision(
        self,
        problem: MMShape,
        hardware: Hardware,
        candidates: Candidates,
        ranking: Ranking,
        rows: list[int],
        took_us: float,
        mode: str,
        epilogue: str = "",
        own: str = "",
    ) -> None:
        """Count a decision and keep it for `explain`; the first of `rows` is the winner, and `own`
        the template that plain torch runs, where it is not the usual one."""
        others = [int(row) for row in ranking.order[: RUNNERS_UP + 1] if row != rows[0]]
        winner, *runners_up = (
            ranking.prediction(candidates, row) for row in (rows[0], *others[:RUNNERS_UP])
        )
        plain = candidates.first_rows.get(own or policy.plain_choice(candidates))
        if self.settings.mode != "auto":
            mode += f", {self.settings.mode}"
        self.fallback.decided()
        self.record.add(
            Decision(
                problem=problem,
                hardware=hardware.name,
                winner=winner,
                runners_up=tuple(runners_up),
                source=ranking.source,
                microseconds=took_us,
                mode=mode,
                kept=len(rows),
                ranked=len(ranking.order),
                note=ranking.note,
                plain=None if plain is None else ranking.prediction(candidates, plain),
                epilogue=epilogue,
            )
        )


def check_decides_alone(ranking: Ranking) -> None:
    """Abstain where the first choice may only be benchmarked."""
    if ranking.shortlist:
        raise Abstained(f"{ranking.source} shortlists for max-autotune only: {ranking.shortlist}")
