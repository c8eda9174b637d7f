"""Time limit of a user's code inside a compile."""

from __future__ import annotations

import contextvars
import queue
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from torch_diode.types.errors import DiodeError

Result = TypeVar("Result")


class TimeLimit:
    """Time limit of a user's code, which is not called again once it took longer."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._is_too_slow = False

    def call(self, seconds: float, call: Callable[[], Result]) -> Result:
        """The result of a call, or its error; refused where it takes longer, or one did before."""
        if self._is_too_slow:
            raise DiodeError(f"{self.name}: took longer than {seconds:g} s before")
        try:
            return call_within(seconds, call)
        except TimeoutError:
            self._is_too_slow = True
            raise DiodeError(
                f"{self.name}: took longer than {seconds:g} s; it is not called again"
            ) from None


class _Worker:
    """A thread for one call after another: starting one per call takes several times as long."""

    def __init__(self) -> None:
        self.calls: queue.SimpleQueue[tuple[Callable[[], Any], queue.SimpleQueue[Any]]]
        self.calls = queue.SimpleQueue()
        self.thread = threading.Thread(target=self._serve, name="torch-diode-rule", daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        while True:
            call, answers = self.calls.get()
            result, fault = None, None
            try:
                result = call()
            except BaseException as caught:  # noqa: BLE001 - raised again by the caller
                fault = caught
            _idle.append(self)
            answers.put((result, fault))
            del call, answers, result, fault  # the next call may be hours away


_idle: deque[_Worker] = deque()


def _worker() -> _Worker:
    """One that waits for a call; those of a process that forked this one are gone."""
    while True:
        try:
            worker = _idle.pop()
        except IndexError:
            return _Worker()
        if worker.thread.is_alive():
            return worker


def call_within(seconds: float, call: Callable[[], Result]) -> Result:
    """The result of a call, or its error; `TimeoutError` where it takes longer.

    It runs on a thread of its own, since nothing else can be left while it hangs. One that never
    returns goes on there until the process ends.
    """
    answers: queue.SimpleQueue[tuple[Result, BaseException | None]] = queue.SimpleQueue()
    context = contextvars.copy_context()
    _worker().calls.put((lambda: context.run(call), answers))
    try:
        result, fault = answers.get(timeout=seconds)
    except queue.Empty:
        raise TimeoutError from None
    if fault is not None:
        raise fault
    return result
