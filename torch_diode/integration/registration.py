"""Turning torch-diode on and off: at import, or by a call.

Light to import: torch is looked for, not imported, and anything that needs `torch._inductor` waits
until torch imports it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

from torch_diode.integration import settings as switches
from torch_diode.integration.base import BaseIntegration
from torch_diode.integration.discovery import create
from torch_diode.integration.installation import Registration
from torch_diode.integration.settings import Settings
from torch_diode.integration.status import Status, Step
from torch_diode.types.errors import DiodeError

if TYPE_CHECKING:
    from torch_diode.integration.deciding.record import Decisions
    from torch_diode.integration.settings import Heuristics
    from torch_diode.types.hardware import Hardware

Added = TypeVar("Added", bound=BaseIntegration)
_registration = Registration()


def load_heuristic(hardware: Hardware) -> Status:
    """Load the heuristic for a hardware now, instead of at the first decision."""
    if _registration.active:
        with contextlib.suppress(DiodeError):  # kept, and part of the status
            _registration.matmul.decider.heuristics.of(hardware)
    return _registration.status()


def register_on_import() -> None:
    """Enable at `import torch_diode`, in the full distribution. Never raises: importing must not
    fail a program."""
    if switches.switched_off():
        _registration.refused = Step("switch", "off", "TORCH_DIODE=0")
        return

    def register() -> None:
        try:
            _registration.enable(switches.from_environment())
        except DiodeError as fault:
            _registration.refused = Step("registration", "failed", str(fault))
            raise

    _registration.fallback.run(register)


def enable(
    heuristic: Heuristics | None = None,
    mode: str | None = None,
    *,
    strict: bool | None = None,
    top: int | None = None,
    tma: bool | None = None,
    epilogues: bool | None = None,
    integrations: Iterable[BaseIntegration] = (),
) -> Status:
    """Turn torch-diode on for this process, or change its settings.

    Without a heuristic, the default one for the hardware decides. Several may be given, as a list:
    those for matmul are tried in order, and functions for other decisions take those. Settings that
    are not given come from the environment. `integrations` adds further decisions.
    """
    settings = switches.from_environment().changed(
        heuristic=heuristic, mode=mode, strict=strict, top=top, tma=tma, epilogues=epilogues
    )
    _registration.enable(settings, integrations)
    return _registration.status()


def register_integration(integration: type[Added]) -> type[Added]:
    """Add a subclass of `BaseIntegration` for this process, also as a decorator.

    It is installed with the others: now, if torch-diode is on. One of the same name is replaced.
    """
    _registration.add(create(integration))
    return integration


def disable() -> None:
    """Turn torch-diode off; torch is as it was before."""
    _registration.disable()


@contextlib.contextmanager
def using(
    heuristic: Heuristics,
    mode: str | None = None,
    *,
    strict: bool | None = None,
    top: int | None = None,
    tma: bool | None = None,
    epilogues: bool | None = None,
) -> Iterator[None]:
    """Decide with this heuristic inside the `with`, and restore the state before it afterwards.

    Applies to the whole process, since backward graphs are compiled on autograd's threads. Call the
    backward inside the scope too: afterwards it is decided without the heuristic, but torch caches
    it with its forward. `disable()` inside holds until the scope ends.
    """
    now = current_settings() or switches.from_environment()
    with scope(
        now.changed(
            heuristic=heuristic, mode=mode, strict=strict, top=top, tma=tma, epilogues=epilogues
        )
    ):
        yield


def current_settings() -> Settings | None:
    """The settings in use; None while torch-diode is off."""
    return _registration.matmul.settings if _registration.active else None


@contextlib.contextmanager
def scope(settings: Settings) -> Iterator[None]:
    """Decide under these settings inside the `with`, as `using` does."""
    _registration.enter(settings)
    try:
        yield
    finally:
        _registration.leave(settings)


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """Turn torch-diode off inside the `with`, for the whole process."""
    active, settings = list(_registration.active), _registration.matmul.settings
    _registration.disable()
    try:
        yield
    finally:
        if active:
            _registration.enable(settings, active)


def status() -> Status:
    """Steps of registration, counters, hardware and heuristics; prints as text."""
    _registration.discover()
    return _registration.status()


@contextlib.contextmanager
def enabled_unless_off() -> Iterator[None]:
    """Turn torch-diode on inside the `with`, unless TORCH_DIODE=0; afterwards it is as before."""
    was_off = current_settings() is None
    if was_off and not switches.switched_off():
        enable()
    try:
        yield
    finally:
        if was_off:
            disable()


def explain() -> Decisions:
    """The recorded decisions, oldest first; prints as a table."""
    others = (_registration.attention, _registration.cpu_attention, _registration.answers)
    answers = [answered for integration in others for answered in integration.record]
    decisions = _registration.matmul.record.explain(answers)
    decisions.notes = _registration.matmul.notes()
    if not decisions and _registration.active:
        decisions.notes += _why_no_decisions()
    return decisions


def _why_no_decisions() -> tuple[str, ...]:
    """Why torch decided everything so far, a sentence per reason."""
    abstentions = _registration.fallback.counters.abstentions
    if not abstentions:
        loaded = _registration.matmul.loaded().items()
        return (
            "no matmul was compiled in this process; graphs from torch's cache keep their kernels, "
            "and TORCHINDUCTOR_FORCE_DISABLE_CACHES=1 compiles them anew to show why",
            *(f"{name}: {text}" for name, text in loaded),
        )
    return tuple(f"torch decided: {reason}" for reason, _ in abstentions.most_common())


def probe() -> Status:
    """Import Inductor and probe every interface now, instead of at the first compile."""
    from torch._inductor.virtualized import V

    V.choices  # noqa: B018
    return _registration.status()
