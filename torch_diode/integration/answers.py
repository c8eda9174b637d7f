"""The integrations of decisions beyond matmul: each is taken by a function, where there is one, and
flex attention's configs are limited to those that fit the chip."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar

import torch_diode
from torch_diode.integration.base import ON, ChoicesIntegration
from torch_diode.integration.hooks import torch_compat
from torch_diode.integration.hooks.device_hardware import GPU_KINDS, hardware_of
from torch_diode.integration.hooks.fallback import Abstained, Fallback, NotApplicable
from torch_diode.integration.settings import Settings

if TYPE_CHECKING:
    from torch_diode.heuristics.attention_table import AttentionTable
    from torch_diode.heuristics.custom import CustomAnswer
    from torch_diode.heuristics.questions import Question
    from torch_diode.integration.deciding.record import AnswerRecord
    from torch_diode.types.hardware import Hardware


ATTENTION = "attention"
WHAT_FITS = "what fits"


class AnswersIntegration(ChoicesIntegration):
    """Reductions, fusion and convolutions, by the functions of the settings: of those for a
    decision the first that does not abstain answers.

    Installed only while there are such functions, and overrides only the hooks of their decisions.
    """

    name = "answers"
    falls_back = True
    decisions: ClassVar[tuple[str, ...]] = ("reduction", "fusion", "convolution")

    def __init__(self, fallback: Fallback) -> None:
        super().__init__()
        self.fallback = fallback
        self.settings = Settings()
        self._record: AnswerRecord | None = None

    @property
    def functions(self) -> tuple[CustomAnswer, ...]:
        """Those of the settings for decisions of this integration."""
        return tuple(each for each in self.settings.answers if each.decision in self.decisions)

    @property
    def hooks(self) -> tuple[str, ...]:  # type: ignore[override]
        """The methods of this release for the decisions there are functions for."""
        return torch_compat.answer_hooks(each.decision for each in self.functions)

    @property
    def record(self) -> AnswerRecord:
        """The answers so far."""
        if self._record is None:
            from torch_diode.integration.deciding.record import AnswerRecord

            self._record = AnswerRecord()
        return self._record

    def status(self) -> tuple[str, str]:
        """The state, with the functions by their decision."""
        functions = ", ".join(f"{each.name} ({each.decision})" for each in self.functions)
        return self.state, ": ".join(filter(None, (functions, self.detail)))

    def mixin(self, handler: Any) -> type:
        """A class with those methods: each gets torch's own answer first, then asks."""
        from torch_diode.integration.deciding import question_builder

        def method(hook: str) -> Callable[..., Any]:
            def call(self: Any, *args: Any, **kwargs: Any) -> Any:
                own = getattr(super(mixin, self), hook)(*args, **kwargs)
                return question_builder.answer(hook, ask, own, args, kwargs)

            return call

        ask = self._ask
        mixin = type("Answers", (), {hook: method(hook) for hook in self.hooks})
        return mixin

    def _ask(self, build: Callable[[], Question]) -> Any:
        if self.state != ON:
            return None
        return self.fallback.run(lambda: self._answer(build, self._decide))

    def _answer(
        self, build: Callable[[], Question], decide: Callable[[Question], tuple[Any, str]]
    ) -> Any:
        from torch_diode.integration.deciding.record import Answered

        start = time.perf_counter_ns()
        question = build()
        answer, source = decide(question)
        took_us = (time.perf_counter_ns() - start) / 1000
        self.fallback.decided()
        self.record.add(Answered(question, answer, source, took_us))
        return None if self.settings.mode == "observe" else answer

    def _decide(self, question: Question) -> tuple[Any, str]:
        """An answer and the function's name; raises if all abstain."""
        if torch_compat.batch_invariant():
            raise NotApplicable  # sizes must not change how anything is computed
        functions = self._asked(question.hardware)
        asked = [each for each in functions if each.decision == question.decision]
        for function in asked:
            answer = function(question)
            if answer is not None:
                return question.checked(answer), function.name
        names = ", ".join(function.name for function in asked)
        raise Abstained(f"{names} abstained on {question.decision} ({question.asks})")

    def _asked(self, hardware: Hardware) -> tuple[CustomAnswer, ...]:
        """What is asked about decisions on this hardware, in order."""
        return self.functions

    def fingerprint(self, devices: Iterable[Any]) -> str:
        """The functions' fingerprints, in order; empty where torch decides."""
        return self.digest_of(self.functions)

    def digest_of(self, asked: Iterable[CustomAnswer]) -> str:
        """Digest of the fingerprints of what is asked; empty where torch decides."""
        if self.settings.mode == "observe" or torch_compat.compiles_in_subprocess():
            return ""
        from torch_diode.heuristics.base import digest

        return digest(torch_diode.__version__, *(each.fingerprint() for each in asked))


class AttentionIntegration(AnswersIntegration):
    """Flex attention: a function's configs or Inductor's own, without those known not to fit the
    chip. Where none of them fits, the nearest smaller one that does: there is no other kernel to
    fall back to, and the compile would fail."""

    name = ATTENTION
    decisions = (ATTENTION,)

    @property
    def hooks(self) -> tuple[str, ...]:  # type: ignore[override]
        """The methods of this release; installed without functions too."""
        return torch_compat.answer_hooks([ATTENTION])

    def _ask(self, build: Callable[[], Question]) -> Any:
        """Without the functions where these fail or abstain."""
        answer = super()._ask(build) if self.functions else None
        answered = self.functions and self.settings.mode == "observe"
        if answer is not None or answered or self.state != ON:
            return answer
        return self.fallback.run(lambda: self._answer(build, self._decide_alone))

    def _decide(self, question: Question) -> tuple[Any, str]:
        answer, source = super()._decide(question)
        fitting = question.fitting(answer)
        return fitting, source if fitting == answer else f"{source}, {WHAT_FITS}"

    def _decide_alone(self, question: Question) -> tuple[Any, str]:
        answer, source = self._shortlist(question)
        fitting = question.fitting(answer)
        if fitting == question.default:
            raise NotApplicable
        return fitting, source if answer != question.default else WHAT_FITS

    def _shortlist(self, question: Any) -> tuple[tuple[Any, ...], str]:
        """The shipped table's shortlist for max-autotune; it decides nothing alone."""
        table = None if torch_compat.batch_invariant() else self._table(question.hardware)
        shortlist = table.shortlist(question) if table is not None else None
        if table is None or shortlist is None:
            return question.default, ""
        return shortlist, f"{table.name} of {table.hardware}"

    def _table(self, hardware: Hardware) -> AttentionTable | None:
        """The shipped table, unless shipped models are turned off."""
        from torch_diode.heuristics.attention_table import shipped_table
        from torch_diode.integration.default_heuristic import NONE

        return None if self.settings.model == NONE else shipped_table(hardware)

    def fingerprint(self, devices: Iterable[Any]) -> str:
        """That of the functions and, on GPUs, of what is known to fit."""
        gpus = [device for device in devices if device.type in GPU_KINDS]
        functions = super().fingerprint(devices) if gpus or self.functions else ""
        if not functions:
            return ""
        from torch_diode.candidates.gpu.attention import measured_digest

        tables = [self._table(hardware_of(device)) for device in gpus]
        shipped = [table.fingerprint() for table in tables if table is not None]
        return "".join([functions, measured_digest(), *shipped])
