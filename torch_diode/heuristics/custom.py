"""User functions as heuristics: from a problem and its candidates to an order; and their
fingerprint, the compiled code and the plain values that it uses."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from itertools import islice
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any, Literal, overload

import numpy as np
import numpy.typing as npt

from torch_diode.candidates.space import position_of
from torch_diode.heuristics.base import Heuristic, digest
from torch_diode.heuristics.questions import QUESTIONS, Node, Question
from torch_diode.heuristics.time_limit import Result, TimeLimit
from torch_diode.types.candidate import Candidate, KernelConfig, TritonGEMMConfig
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.errors import InvalidValueError
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape
from torch_diode.types.ranking import Ranking

Positions = npt.NDArray[np.int64]
MATMUL = "matmul"
DECISIONS = (MATMUL, *dict.fromkeys(question.decision for question in QUESTIONS))
Rule = Callable[[MMShape, Sequence[Candidate]], Iterable[Candidate] | None]
AnswerRule = Callable[[Any], Any]


class CandidateView(Sequence[Candidate]):
    """Candidates as a sequence of objects, created on access: most functions access few."""

    def __init__(self, candidates: Candidates) -> None:
        self.candidates = candidates
        self._created: dict[int, Candidate] = {}

    def __len__(self) -> int:
        return len(self.candidates)

    @overload
    def __getitem__(self, index: int) -> Candidate: ...
    @overload
    def __getitem__(self, index: slice) -> list[Candidate]: ...
    def __getitem__(self, index: int | slice) -> Candidate | list[Candidate]:
        positions = range(len(self))[index]
        if isinstance(positions, range):
            return [self._at(position) for position in positions]
        return self._at(positions)

    def __iter__(self) -> Iterator[Candidate]:
        return map(self._at, range(len(self)))

    def _at(self, position: int) -> Candidate:
        if position not in self._created:
            self._created[position] = self.candidates[position]
        return self._created[position]

    def positions(self) -> dict[int, int]:
        """Positions of the candidates created so far, by identity."""
        return {id(candidate): position for position, candidate in self._created.items()}


class CustomFunction:
    """A user's function, its name and its fingerprint."""

    seconds = 10.0
    """Time limit of an answer, which is computed on a thread of its own: a function that takes
    longer is not called again, and a compile leaves its decisions to torch."""

    def __init__(self, fn: Callable[..., Any], name: str = "") -> None:
        if not callable(fn):
            raise InvalidValueError(f"{type(self).__name__}: got {fn!r:.80}; expected a function")
        self.fn = fn
        self.name = name or getattr(fn, "__name__", type(fn).__name__)
        self._key = uuid.uuid4().hex
        self._limit = TimeLimit(self.name)
        self.portable = getattr(fn, "version", None) is not None or code_text(fn) is not None

    def fingerprint(self) -> str:
        """The function's `version`, if any, its code and the values that uses. Where a value is
        not plain and there is no version, a key of this object in this process."""
        version, text = getattr(self.fn, "version", None), code_text(self.fn)
        if text is None:
            text = f"{self._key} {os.getpid()}" if version is None else ""
        module = getattr(self.fn, "__module__", "")
        path = getattr(self.fn, "__qualname__", type(self.fn).__qualname__)
        return digest("custom", self.name, f"{module}.{path}", str(version), text)

    def _in_time(self, call: Callable[[], Result]) -> Result:
        return self._limit.call(self.seconds, call)


class CustomAnswer(CustomFunction):
    """Calls a function that answers the questions of one decision of Inductor's; None abstains."""

    def __init__(self, decision: str, fn: AnswerRule, name: str = "") -> None:
        super().__init__(fn, name)
        self.decision = decision

    def __call__(self, question: Question) -> Any:
        """The function's answer, unchecked."""
        return self._in_time(lambda: self.fn(question))

    def fingerprint(self) -> str:
        """That of the function, for this decision."""
        return digest(self.decision, super().fingerprint())


class CustomHeuristic(CustomFunction, Heuristic):
    """Calls a function, which returns all candidates or a few, best first; None or an empty list
    abstains."""

    fn: Rule

    def __call__(
        self, problem: MMShape, candidates: Sequence[Candidate]
    ) -> Iterable[Candidate] | None:
        """Call the function itself, so that a decorated one can be tested directly."""
        return self.fn(problem, candidates)

    def rank(self, problem: MMShape, candidates: Candidates, hardware: Hardware) -> Ranking | None:
        """The function's order, without times; its errors propagate."""
        if not len(candidates):
            return None
        order = self._in_time(lambda: self._order(problem, candidates))
        if not len(order):
            return None
        return Ranking(order, np.full(len(candidates), np.nan), self.name)

    def _order(self, problem: MMShape, candidates: Candidates) -> Positions:
        view = CandidateView(candidates)
        answer = self.fn(problem, view)
        return np.zeros(0, np.int64) if answer is None else self._positions(answer, view, problem)

    def _positions(self, answer: object, view: CandidateView, problem: MMShape) -> Positions:
        unordered = isinstance(answer, (str, bytes, Candidate, Set))
        if unordered or not isinstance(answer, Iterable):
            raise InvalidValueError(
                f"{self.name}: got {answer!r:.80}; expected the candidates, best first, as a "
                "list, or None to abstain"
            )
        chosen = list(islice(answer, len(view) + 1))  # of what may never end
        positions = view.positions()
        order = [positions.get(id(item), -1) for item in chosen]
        for i, item in enumerate(chosen):
            if order[i] < 0:
                order[i] = self._search(item, view.candidates, problem)
        return np.array(order, dtype=np.int64)

    def _search(self, item: object, candidates: Candidates, problem: MMShape) -> int:
        """The position of a candidate that the function created itself."""
        position = None
        if isinstance(item, Candidate):
            position = position_of(item, candidates, problem)
        if position is None:
            raise InvalidValueError(
                f"{self.name}: got {str(item)!r:.80} in its answer; expected some of the "
                f"{len(candidates)} candidates it was given"
            )
        return position


@overload
def heuristic(decision: Literal["matmul"], name: str = "") -> Callable[[Rule], CustomHeuristic]: ...
@overload
def heuristic(
    decision: Literal["reduction", "convolution", "fusion", "attention", "sdpa"], name: str = ""
) -> Callable[[AnswerRule], CustomAnswer]: ...
def heuristic(decision: str, name: str = "") -> Callable[[Any], CustomFunction]:
    """Decorator that makes a heuristic of a function: `@heuristic("matmul")` orders candidates;
    `"reduction"`, `"convolution"`, `"fusion"`, `"attention"` and `"sdpa"` answer a question."""
    if decision not in DECISIONS:
        raise InvalidValueError(
            f"heuristic: got {decision!r:.80}; expected one of {', '.join(DECISIONS)}"
        )
    if decision == MATMUL:
        return lambda fn: CustomHeuristic(fn, name)
    return lambda fn: CustomAnswer(decision, fn, name)


_PLAIN = {type(None), bool, int, float, complex, str, bytes, range, type(...)}
_PLAIN |= {MMShape, Candidate, TritonGEMMConfig, KernelConfig, Node}
"""Types whose `repr` is complete and the same in every process."""

_Seen = dict[FunctionType, int]
"""Functions met so far and their number, in the order in which they were met."""


class _NotPlainError(Exception):
    """A value that text cannot stand for: a tensor, a lock, an object with state."""


def code_text(fn: object) -> str | None:
    """Text that changes with whatever `fn` does and is the same in every process, or None where
    there is no such text: `fn` is not a Python function, or uses a value that is not plain.

    Compiled code rather than source: `inspect.getsource` reads the file as it is now, which may
    have been edited since the import, and returns one text for two lambdas on one line. Functions
    of the same module and functions in a closure are followed. Code imported from other modules is
    named, not followed: a function that depends on it should have a `version` attribute, to be
    changed with it.
    """
    if not isinstance(fn, FunctionType):
        return None
    try:
        return _function(fn, {})
    except (_NotPlainError, RecursionError):
        return None


def _function(fn: FunctionType, seen: _Seen) -> str:
    if fn in seen:
        return f"function #{seen[fn]}"
    seen[fn] = len(seen)
    try:
        cells = [cell.cell_contents for cell in fn.__closure__ or ()]
    except ValueError:  # a variable without a value yet
        raise _NotPlainError from None
    names = _names(fn.__code__) & fn.__globals__.keys()
    return "\n".join(
        [
            _code(fn.__code__, seen),
            *(_value(v, seen) for v in (cells, fn.__defaults__, fn.__kwdefaults__, vars(fn))),
            *(f"{name} = {_global(fn, name, seen)}" for name in sorted(names)),
        ]
    )


def _code(code: CodeType, seen: _Seen) -> str:
    constants = [
        _code(c, seen) if isinstance(c, CodeType) else _value(c, seen) for c in code.co_consts
    ]
    variables = code.co_names + code.co_varnames + code.co_freevars + code.co_cellvars
    handlers = getattr(code, "co_exceptiontable", b"")  # Python 3.11 and later
    arguments = (code.co_argcount, code.co_kwonlyargcount, code.co_flags)
    return repr((code.co_code, handlers, arguments, variables, constants))


def _names(code: CodeType) -> set[str]:
    nested = (_names(c) for c in code.co_consts if isinstance(c, CodeType))
    return set(code.co_names).union(*nested)


def _global(fn: FunctionType, name: str, seen: _Seen) -> str:
    value: Any = fn.__globals__[name]
    if isinstance(value, ModuleType):
        return value.__name__
    if isinstance(value, type | FunctionType | BuiltinFunctionType):
        module, path = value.__module__, value.__qualname__
        # A path with "<locals>" or "<lambda>" may stand for several functions.
        if module and module != fn.__globals__.get("__name__") and "<" not in path:
            return f"{module}.{path}"
    return _value(value, seen)


def _value(value: Any, seen: _Seen) -> str:
    kind = type(value)
    if kind in _PLAIN:
        return repr(value)
    if kind in (tuple, list):
        return f"{kind.__name__}({', '.join([_value(item, seen) for item in value])})"
    if kind in (set, frozenset):
        return f"{kind.__name__}({', '.join(sorted(_value(item, seen) for item in value))})"
    if kind is dict:
        pairs = [f"{_value(key, seen)}: {_value(item, seen)}" for key, item in value.items()]
        return f"dict({', '.join(pairs)})"
    if kind is FunctionType:
        return _function(value, seen)
    raise _NotPlainError
