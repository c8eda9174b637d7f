"""Time limit of a user's code inside a compile."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


def call_within(seconds: float, call: Callable[[], Result]) -> Result:
    """The result of a call, or its error; `TimeoutError` where it takes longer.

    It runs on a thread of its own, since nothing else can be left while it hangs. One that never
    returns goes on there until the process ends.
    """
    results: list[Result] = []
    faults: list[BaseException] = []

    def run() -> None:
        try:
            results.append(call())
        except BaseException as fault:  # noqa: BLE001 - raised again below
            faults.append(fault)

    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(run,), name="torch-diode-rule", daemon=True)
    thread.start()
    thread.join(seconds)
    if faults:
        raise faults[0]
    if not results:
        raise TimeoutError
    return results[0]
