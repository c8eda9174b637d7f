"""The one `try` around every decision: whatever fails inside, torch's own list is used."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import threading
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from torch_diode.types.errors import DiodeError

Result = TypeVar("Result")
_MAX_CAUSES = 100
_OTHER_CAUSES = "other causes"
_STANDARD_LIBRARY = os.path.dirname(os.__file__) + os.sep  # noqa: PTH120


class DiodeWarning(UserWarning):
    """A decision failed and was left to torch."""


class Abstained(DiodeError):  # noqa: N818
    """No heuristic decides this problem: counted, not a fault; torch's own list is used."""


class NotApplicable(DiodeError):  # noqa: N818
    """Not a decision of torch-diode's: ignored and not counted."""


@dataclass
class Counters:
    """Numbers of decisions, abstentions and fallbacks since torch-diode was imported."""

    decisions: int = 0
    abstentions: Counter[str] = field(default_factory=Counter)
    fallbacks: Counter[str] = field(default_factory=Counter)

    def copy(self) -> Counters:
        """A snapshot."""
        return Counters(self.decisions, Counter(self.abstentions), Counter(self.fallbacks))


class Fallback:
    """Runs steps of a decision; on any error warns, counts, and returns None."""

    def __init__(self) -> None:
        self.counters = Counters()
        self._warned: set[str] = set()
        self._lock = threading.Lock()

    def decided(self) -> None:
        """Count a decision."""
        with self._lock:
            self.counters.decisions += 1

    def run(
        self,
        step: Callable[[], Result],
        on_fault: Callable[[str], None] | None = None,
        name: str = "",
    ) -> Result | None:
        """The result of `step`; None where it abstained or failed.

        The only place that catches every exception but the user's interrupt: a compile must not
        fail because of a heuristic. Warning and counters name the error, and the integration of
        that `name`; `on_fault` receives its description.
        """
        try:
            return step()
        except NotApplicable:
            return None
        except Abstained as reason:
            with self._lock:
                self.counters.abstentions[str(reason)] += 1
            return None
        except KeyboardInterrupt:
            raise
        except BaseException as fault:  # noqa: BLE001 - a rule may even call sys.exit
            self.report(fault, name)
            if on_fault is not None:
                on_fault(describe(fault))
            return None

    def report(self, fault: BaseException, name: str = "") -> None:
        """Count an error, and warn the first time its cause is seen."""
        integration = f"integration {name}: " if name else ""
        cause = integration + cause_of(fault)
        with self._lock:
            fallbacks = self.counters.fallbacks
            if cause not in fallbacks and len(fallbacks) >= _MAX_CAUSES:
                cause = _OTHER_CAUSES
            fallbacks[cause] += 1
            first = cause not in self._warned
            self._warned.add(cause)
        if first:
            # Where warnings are errors, this one still must not fail the compile.
            with contextlib.suppress(DiodeWarning):
                text = f"torch-diode left a decision to torch: {integration}{describe(fault)}"
                warnings.warn_explicit(text, DiodeWarning, *_users_line(fault))


def _users_line(fault: BaseException) -> tuple[str, int]:
    """File and line that a warning points at: the innermost code of the user's, in the heuristic
    that failed or else where the compile was asked for."""
    raised = [(f.tb_frame, f.tb_lineno) for f in _chain(fault.__traceback__, "tb_next")][::-1]
    callers = [(frame, frame.f_lineno) for frame in _chain(sys._getframe(1), "f_back")]
    places = [(frame.f_code.co_filename, line) for frame, line in [*raised, *callers]]
    return next((place for place in places if not _is_library(place[0])), places[-1])


def _is_library(file: str) -> bool:
    """True for code of this package, of torch and of the standard library."""
    torch = getattr(sys.modules.get("torch"), "__file__", None)
    folders = [Path(__file__).parents[2], *([Path(torch).parent] if torch else [])]
    ours = file.startswith(("<", *(f"{folder}{os.sep}" for folder in folders)))
    return ours or (file.startswith(_STANDARD_LIBRARY) and "site-packages" not in file)


def _chain(first: Any, following: str) -> Iterator[Any]:
    while first is not None:
        yield first
        first = getattr(first, following)


def cause_of(fault: BaseException) -> str:
    """An error's cause in one line; the same for problems that differ only in their numbers."""
    return re.sub(r"\b(0x[0-9a-f]+|\d+(\.\d+)?(x\d+)*)\b", "#", describe(fault))[:200]


def fault_of(step: Callable[[], object]) -> str:
    """Description of the error that ends a step whose result can be done without; empty if none."""
    try:
        step()
    except DiodeError as fault:
        return str(fault)
    except Exception as fault:  # noqa: BLE001 - torch's own, of any kind
        return describe(fault)
    return ""


def describe(fault: BaseException) -> str:
    """Type and first line of an error; for any but a DiodeError also its origin."""
    try:
        lines = str(fault).strip().splitlines()
    except Exception:  # noqa: BLE001 - an error whose __str__ fails
        lines = []
    text = f"{type(fault).__name__}: {lines[0]:.1000}" if lines else type(fault).__name__
    text = text.encode("utf-8", "backslashreplace").decode()  # to be printed anywhere
    if lines and isinstance(fault, DiodeError):
        return text
    frames = traceback.extract_tb(fault.__traceback__)
    place = f" in {frames[-1].name} of {Path(frames[-1].filename).name}" if frames else ""
    return f"{text}{place}"
