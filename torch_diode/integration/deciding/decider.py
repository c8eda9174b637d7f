"""From a question of Inductor's to an answer: problem, candidates, ranking, choices."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import torch_diode
from torch_diode.candidates import candidate_space
from torch_diode.heuristics import policy
from torch_diode.heuristics.base import Heuristic, digest
from torch_diode.integration import default_heuristic
from torch_diode.integration.deciding.problem import problem_of
from torch_diode.integration.deciding.ranking_cache import RankingCache
from torch_diode.integration.deciding.record import RUNNERS_UP, Decision, Record, ranked
from torch_diode.integration.hooks import device_hardware, torch_compat
from torch_diode.integration.hooks.fallback import Abstained, Fallback, NotApplicable
from torch_diode.integration.settings import Settings
from torch_diode.types.candidate import ATEN
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.errors import DiodeError
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import OPS, MMShape
from torch_diode.types.ranking import Ranking

if TYPE_CHECKING:
    from torch_diode.integration.autotune.clean_benchmark import CleanBenchmark
    from torch_diode.integration.deciding.request import ChoiceRequest


class Decider:
    """Answers questions with a heuristic, under some settings."""

    def __init__(
        self, settings: Settings, fallback: Fallback | None = None, record: Record | None = None
    ) -> None:
        self.settings = settings
        self.fallback = fallback if fallback is not None else Fallback()
        self.record = record if record is not None else Record()
        self.notes: dict[str, None] = {}
        self._heuristics: dict[str, Heuristic | DiodeError | None] = {}
        self._rankings = RankingCache()
        self._lock = threading.Lock()
        self._clean_times: CleanBenchmark | None = None

    def change(self, settings: Settings) -> None:
        """Answer under other settings from now on; default heuristics are looked for afresh."""
        with self._lock:
            self.settings = settings
            self._heuristics = {}
            self._rankings = RankingCache()

    def release(self) -> None:
        """Leave what answers set up beside themselves; the next one sets it up again."""
        if self._clean_times is not None:
            self._clean_times.disable_for_benchmark_sets()
            self._clean_times = None

    def answer(self, question: ChoiceRequest) -> list[Any] | None:
        """The choices to return to Inductor; None to return its own."""
        return self.fallback.run(lambda: self._decide(question))

    def heuristic_for(self, hardware: Hardware) -> Heuristic | None:
        """The user's heuristic, or the default one for this hardware, loaded once.

        One that could not be loaded is not tried again: the same fault is raised each time.
        """
        found = self._found_for(hardware)
        if isinstance(found, DiodeError):
            raise found
        return found

    def _found_for(self, hardware: Hardware) -> Heuristic | DiodeError | None:
        named = self.settings.heuristic
        with self._lock:
            if hardware.name not in self._heuristics:
                self._heuristics[hardware.name] = (
                    self._load(hardware)
                    if named is None
                    else default_heuristic.check_versions(named, hardware, self.settings)
                )
            return self._heuristics[hardware.name]

    def _load(self, hardware: Hardware) -> Heuristic | DiodeError | None:
        # On a thread of its own: on one that compiles, torch reads a file's tensors as fake ones,
        # and the user may have set another default device.
        with ThreadPoolExecutor(1, "torch-diode-load") as thread:
            loading = thread.submit(default_heuristic.default_heuristic, hardware, self.settings)
        try:
            return loading.result()
        except DiodeError as fault:
            return fault

    def loaded(self) -> dict[str, str]:
        """By hardware: the heuristic in use there, or why there is none."""
        if self.settings.heuristic is not None:
            return {"any hardware": self.settings.heuristic.name}
        found, why = list(self._heuristics.items()), default_heuristic.why_no_heuristic(self.settings)
        return {
            name: value.name if isinstance(value, Heuristic) else str(value or why)
            for name, value in found
        }

    def has_heuristic(self) -> bool:
        """Whether any hardware asked about so far has one."""
        return any(isinstance(value, Heuristic) for value in self._heuristics.values())

    def fingerprint(self, devices: Iterable[Any]) -> str:
        """What of torch-diode a compile for these devices depends on; empty where nothing.

        Goes into torch's cache keys. With no heuristic the compile is plain torch's, and may
        share its caches.
        """
        settings = self.settings
        if settings.mode == "observe" or torch_compat.compiles_in_subprocess():
            return ""
        if settings.heuristic is not None:
            parts = [settings.heuristic.fingerprint()]
        else:
            parts = self._default_fingerprints(devices)
        switches = map(
            str, (settings.mode, settings.strict, settings.top, settings.tma, settings.epilogues)
        )
        # Another version may decide otherwise with the same model.
        return digest(torch_diode.__version__, *switches, *parts) if parts else ""

    def _default_fingerprints(self, devices: Iterable[Any]) -> list[str]:
        parts = []
        for hardware in dict.fromkeys(device_hardware.hardware_of(device) for device in devices):
            heuristic = self._found_for(hardware)
            # One that could not be loaded decides nothing: the compile is plain torch's.
            if isinstance(heuristic, Heuristic):
                parts += [hardware.name, heuristic.fingerprint()]
        return parts

    def _decide(self, question: ChoiceRequest) -> list[Any] | None:
        from torch_diode.integration.deciding.choice_builder import ChoiceBuilder

        start = time.perf_counter_ns()
        self._check_asked(question)
        hardware = device_hardware.hardware_of(question.device)
        problem, offered, candidates = self._pose(question, hardware)
        ranking = self._rank(problem, candidates, hardware)
        ranking, follows = self._as_compiled(ranking, question, problem, candidates, hardware)
        observing = self.settings.mode == "observe"
        answer = ChoiceBuilder(question, offered, candidates, observing=observing)
        if self.settings.mode == "auto" and question.max_autotune:
            count = policy.benchmark_count(ranking, candidates, self.settings.top)
            rows = policy.benchmark_set(ranking, candidates, count)
            choices: list[Any] | None = answer.several(rows)
            self._have_few_timed()
        else:
            winner, choices = answer.single(
                map(int, policy.single_choice_order(ranking, candidates))
            )
            rows = [winner]
        took = (time.perf_counter_ns() - start - answer.rendering_ns) / 1000
        if choices != []:
            self._record_decision(question, problem, hardware, candidates, ranking, rows, took, follows)
        return None if observing else choices

    def _have_few_timed(self) -> None:
        from torch_diode.integration.autotune.clean_benchmark import clean_benchmark

        clean_benchmark.enable_for_benchmark_sets(self.fallback)
        self._clean_times = clean_benchmark

    def _check_asked(self, question: ChoiceRequest) -> None:
        """Leave what is not ours to torch: other ops, other devices, other calls of a matmul.

        A matmul can come in several calls. Where one candidate is to stand alone, the call with
        ATen in it decides; where a few are to be benchmarked, those with Triton templates do,
        while ATen keeps its own.
        """
        if question.op not in OPS or question.device.type not in device_hardware.GPU_KINDS:
            raise NotApplicable
        other = torch_compat.other_hook(question.handler)
        if other and not self.settings.named:
            raise Abstained(f"{other} answers for matmuls, and no heuristic was named")
        if torch_compat.batch_invariant():
            raise Abstained("config.batch_invariant asks for one kernel whatever the batch")
        if not question.max_autotune:
            asked = ATEN in question.names
        elif self.settings.mode == "auto":
            asked = question.has_triton
        else:
            asked = ATEN in question.names or question.has_triton
        if not asked:
            raise NotApplicable

    def _pose(
        self, question: ChoiceRequest, hardware: Hardware
    ) -> tuple[MMShape, dict[str, Any], Candidates]:
        if self.heuristic_for(hardware) is None:
            raise Abstained(f"{hardware.name}: {default_heuristic.why_no_heuristic(self.settings)}")
        problem = problem_of(question.op, question.inputs)
        offered = question.offered(self.settings.tma)
        candidates = candidate_space(problem, hardware, tuple(offered))
        if not any(name != ATEN for name in candidates.templates):
            raise Abstained(f"{question.op} {problem.dtype}: only ATen is on offer")
        return problem, offered, candidates

    def _rank(self, problem: MMShape, candidates: Candidates, hardware: Hardware) -> Ranking:
        heuristic = self.heuristic_for(hardware)
        assert heuristic is not None
        ranking = self._rankings.of(heuristic, problem, candidates, hardware)
        if ranking is None:
            raise Abstained(f"{heuristic.name} abstained on {problem.op} {problem.dtype}")
        policy.check_fits(ranking, candidates)
        if ranking.note:
            self.notes[f"{ranking.source}: {ranking.note}"] = None
        return ranking

    def _as_compiled(
        self,
        ranking: Ranking,
        question: ChoiceRequest,
        problem: MMShape,
        candidates: Candidates,
        hardware: Hardware,
    ) -> tuple[Ranking, str]:
        """The ranking of what would be compiled in this graph; in words, what follows the matmul
        that a template takes along and ATen does not."""
        from torch_diode.integration.deciding.epilogue_cost import epilogue_of, expand_bias_us

        extra, words = 0.0, ""
        spread = expand_bias_us(problem, hardware) if question.expands_bias else 0.0
        if self.settings.epilogues:
            from torch._inductor.virtualized import V

            # A graph nobody has seen before must not cost the decision: without it, it stands.
            found = self.fallback.run(lambda: epilogue_of(V.graph))
            if found is not None:
                extra = found.extra_us(hardware)
                words = f"{', '.join(dict.fromkeys(found.ops))} (ATen + {extra:.1f} us)"
        counted = policy.adjust_for_compile(
            ranking, candidates, question.fixed_sizes, extra, spread
        )
        return counted, words if extra and counted is not ranking else ""

    def _record_decision(
        self,
        question: ChoiceRequest,
        problem: MMShape,
        hardware: Hardware,
        candidates: Candidates,
        ranking: Ranking,
        rows: list[int],
        took: float,
        epilogue: str,
    ) -> None:
        others = [int(row) for row in ranking.order[: RUNNERS_UP + 1] if row != rows[0]]
        entries = [
            ranked(candidates[row], float(ranking.predicted_us[row]))
            for row in (rows[0], *others[:RUNNERS_UP])
        ]
        asked = "max-autotune" if question.max_autotune else "plain"
        if self.settings.mode != "auto":
            asked += f", {self.settings.mode}"
        self.fallback.decided()
        self.record.add(
            Decision(
                problem=problem,
                hardware=hardware.name,
                winner=entries[0],
                runners_up=tuple(entries[1:]),
                source=ranking.source,
                microseconds=took,
                mode=asked,
                kept=len(rows),
                ranked=len(ranking.order),
                note=ranking.note,
                epilogue=epilogue,
            )
        )
