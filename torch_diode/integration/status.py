"""The status of registration: its steps, counters and notes."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch_diode.integration.hooks.fallback import Counters


@dataclass(frozen=True)
class Step:
    """One step of registration."""

    name: str
    outcome: str
    """`ok`, `waiting`, `off`, `none` or `failed`."""
    detail: str = ""


@dataclass(frozen=True)
class Status:
    """A snapshot for "is it on, and if not, why?"; prints as text."""

    enabled: bool
    distribution: str
    torch: str
    mode: str
    steps: tuple[Step, ...] = ()
    hardware: tuple[str, ...] = ()
    heuristics: dict[str, str] = field(default_factory=dict)
    """By hardware, the heuristic in use or why there is none."""
    integrations: dict[str, str] = field(default_factory=dict)
    """The integrations that are discovered, and the distributions they are from."""
    configs: tuple[str, ...] = ()
    """The options of torch that were set for integrations."""
    counters: Counters = field(default_factory=Counters)
    notes: tuple[str, ...] = ()
    """Caveats of decisions, such as a model of another torch release."""

    @property
    def failed(self) -> tuple[Step, ...]:
        """The failed steps."""
        return tuple(step for step in self.steps if step.outcome == "failed")

    def __str__(self) -> str:
        lines = [
            f"torch-diode is {'on' if self.enabled else 'off'} "
            f"({self.distribution}, torch {self.torch}, mode {self.mode})"
        ]
        width = max((len(step.name) for step in self.steps), default=0)
        lines += [
            f"  {step.name.ljust(width)}  {step.outcome.ljust(7)}  {step.detail}".rstrip()
            for step in self.steps
        ]
        if self.hardware:
            lines.append(f"hardware: {', '.join(self.hardware)}")
        lines += [f"heuristic on {name}: {text}" for name, text in self.heuristics.items()]
        lines += [f"integration {name}: from {text}" for name, text in self.integrations.items()]
        lines += [f"torch config turned on: {text}" for text in self.configs]
        if self.enabled and not self.configs:
            lines.append("torch config turned on: none")
        lines += _counter_lines(self.counters)
        lines += [f"note: {note}" for note in self.notes]
        return "\n".join(lines)


def _counter_lines(counters: Counters) -> list[str]:
    abstentions, fallbacks = counters.abstentions, counters.fallbacks
    lines = [
        f"decisions: {counters.decisions}, abstentions: {abstentions.total()}, "
        f"fallbacks: {fallbacks.total()}"
    ]
    lines += [f"  abstained {n} times: {reason}" for reason, n in abstentions.most_common()]
    lines += [f"  fell back {n} times: {cause}" for cause, n in fallbacks.most_common()]
    return lines
