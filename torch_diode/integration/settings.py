"""User settings, given in code or through the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from torch_diode.types.errors import InvalidValueError

if TYPE_CHECKING:
    from torch_diode.heuristics.base import Heuristic

MODES = ("auto", "single", "observe")
"""`auto`: the single best candidate in plain mode, the k best in max-autotune. `single`: the single
best in both, so that max-autotune benchmarks no matmul. `observe`: torch decides, and decisions are
only recorded."""

_OFF = ("0", "false", "off", "no")
_ON = ("1", "true", "on", "yes")


@dataclass(frozen=True)
class Settings:
    """The user's settings; a heuristic of None stands for the default one."""

    heuristic: Heuristic | None = None
    mode: str = "auto"
    strict: bool = False
    top: int | None = None
    """Number of candidates for max-autotune; None for as many as the heuristic's uncertainty asks
    for."""
    tma: bool = False
    epilogues: bool = True
    """ATen's time includes the epilogue kernel that a Triton template would fuse."""
    model: str = ""
    table: str = ""
    nearest: float = 0.0
    """Greatest distance in log2 at which the nearest row of the table answers; 0 for never."""

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise InvalidValueError(f"mode: got {self.mode!r}; expected one of {', '.join(MODES)}")
        self._check_heuristic()
        for name in ("strict", "tma", "epilogues"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidValueError(
                    f"{name}: got {getattr(self, name)!r:.40}; expected True or False"
                )
        if self.top is not None and (not isinstance(self.top, int) or self.top < 1):
            raise InvalidValueError(f"top: got {self.top!r:.40}; expected a number, 1 or more")

    def _check_heuristic(self) -> None:
        if self.heuristic is None:
            return
        # Imports numpy, and importing torch_diode must stay light.
        from torch_diode.heuristics.base import Heuristic

        if not isinstance(self.heuristic, Heuristic):
            raise InvalidValueError(
                f"heuristic: got {type(self.heuristic).__name__}; expected a Heuristic; wrap a "
                "function in CustomHeuristic, a model in ModelHeuristic"
            )

    @property
    def named(self) -> bool:
        """True if the user chose a heuristic, model or table."""
        return bool(self.heuristic is not None or self.model or self.table)

    def changed(self, **given: Any) -> Settings:
        """A copy with the given values; None leaves a value unchanged."""
        return replace(self, **{name: value for name, value in given.items() if value is not None})


def switched_off(environment: Mapping[str, str] = os.environ) -> bool:
    """True for TORCH_DIODE=0, which turns torch-diode off."""
    return environment.get("TORCH_DIODE", "").strip().lower() in _OFF


def from_environment(environment: Mapping[str, str] = os.environ) -> Settings:
    """The settings of the TORCH_DIODE_* environment variables."""

    def is_on(name: str, otherwise: bool = False) -> bool:
        text = environment.get(name, "").strip().lower()
        if text and text not in _ON + _OFF:
            raise InvalidValueError(f"{name}: got {text!r}; expected 1 or 0")
        return text in _ON if text else otherwise

    mode = environment.get("TORCH_DIODE_MODE", "").strip().lower() or "auto"
    if mode not in MODES:
        raise InvalidValueError(
            f"TORCH_DIODE_MODE: got {mode!r:.40}; expected one of {', '.join(MODES)}"
        )
    return Settings(
        mode=mode,
        strict=is_on("TORCH_DIODE_STRICT"),
        top=_number("TORCH_DIODE_TOP", environment),
        tma=is_on("TORCH_DIODE_TMA"),
        epilogues=is_on("TORCH_DIODE_EPILOGUES", otherwise=True),
        model=environment.get("TORCH_DIODE_MODEL", ""),
        table=environment.get("TORCH_DIODE_TABLE", ""),
        nearest=_distance("TORCH_DIODE_NEAREST", environment),
    )


def _distance(name: str, environment: Mapping[str, str]) -> float:
    text = environment.get(name, "").strip()
    try:
        distance = float(text or 0)
    except ValueError:
        distance = -1.0
    if not 0 <= distance < float("inf"):
        raise InvalidValueError(f"{name}: got {text!r:.40}; expected a distance in log2, such as 1")
    return distance


def _number(name: str, environment: Mapping[str, str]) -> int | None:
    text = environment.get(name, "").strip()
    if text and (not text.isdecimal() or not int(text)):
        raise InvalidValueError(f"{name}: got {text!r:.40}; expected a number, 1 or more")
    return int(text) if text else None
