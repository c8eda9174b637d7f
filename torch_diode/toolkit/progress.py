"""Progress reports: what a long-running function tells its caller while it works."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

_log = logging.getLogger("torch_diode")


@dataclass(frozen=True)
class Progress:
    """One report: how far a stage has come, or, where `message` is set, one line of text."""

    stage: str = ""
    """The stage that is running, such as `Timing` or `Training`."""
    done: int = 0
    total: int = 0
    unit: str = ""
    """What `done` and `total` count, such as `problems` or `epochs`."""
    values: Mapping[str, float] = field(default_factory=dict)
    """Figures of this stage so far, such as `timings/s` or `regret@1`."""
    message: str = ""


ProgressCallback = Callable[[Progress], None]


def log_progress(report: Progress) -> None:
    """The callback used where none is given: messages go to the `torch_diode` logger."""
    if report.message:
        _log.info(report.message)
