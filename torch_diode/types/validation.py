"""Checks of the types' fields; errors name the field, the value and the remedy."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from numbers import Real
from typing import Any, NoReturn

from torch_diode.types.errors import InvalidValueError

MAX_SIZE = 2**31 - 1
SLUG = r"[a-z0-9]+([._+-][a-z0-9]+)*"
"""Pattern of a normalised name, such as nvidia-h200."""
VERSION = r"([0-9A-Za-z][0-9A-Za-z.+_-]*)?"
"""Pattern of a release such as 2.13.0, or nothing."""


def refuse(owner: str, field: str, value: object, expected: str, remedy: str = "") -> NoReturn:
    """Raise the error of an invalid field."""
    shown = repr(value)
    if len(shown) > 80:
        shown = shown[:77] + "..."
    tail = f"; {remedy}" if remedy else ""
    raise InvalidValueError(f"{owner}.{field}: got {shown}; expected {expected}{tail}")


def whole_number(
    owner: str, field: str, value: Any, *, low: int, high: int = MAX_SIZE, remedy: str = ""
) -> int:
    """`value` as an int within [low, high]; numpy integers pass, floats and bools do not."""
    try:
        number = operator.index(value)
    except TypeError:
        number = low - 1
    if isinstance(value, bool) or not low <= number <= high:
        refuse(owner, field, value, f"a whole number from {low} to {high}", remedy)
    return number


def power_of_two(owner: str, field: str, value: Any, *, low: int, high: int) -> int:
    """`value` as an int that is a power of two within [low, high]."""
    number = whole_number(owner, field, value, low=low, high=high)
    if number & (number - 1):
        refuse(owner, field, value, f"a power of two from {low} to {high}")
    return number


def positive_time(owner: str, field: str, value: Any) -> float:
    """`value` as a float of microseconds: finite and above zero."""
    number = _real(value)
    if not 0 < number < math.inf:
        refuse(owner, field, value, "microseconds above zero and finite")
    return number


def fraction(
    owner: str, field: str, value: Any, expected: str = "a fraction of the time, 0 or more"
) -> float:
    """`value` as a float: finite, 0 or more."""
    number = _real(value)
    if not 0 <= number < math.inf:
        refuse(owner, field, value, expected)
    return number


def _real(value: Any) -> float:
    """`value` as a float; NaN where it is not a number or too large for a float."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan


def flag(owner: str, field: str, value: Any) -> bool:
    """`value` as a bool; numpy bools pass, 0 and 1 do not."""
    if isinstance(value, bool):
        return value
    if type(value).__module__ == "numpy" and type(value).__name__ in ("bool", "bool_"):
        return bool(value)
    refuse(owner, field, value, "true or false")


def one_of(owner: str, field: str, value: Any, allowed: Sequence[str]) -> str:
    """`value` if it is among `allowed`; the remedy suggests a similar name."""
    if isinstance(value, str) and value in allowed:
        return value
    near = get_close_matches(value, allowed, n=1) if isinstance(value, str) else []
    remedy = f"did you mean {near[0]!r}?" if near else ""
    refuse(owner, field, value, "one of " + ", ".join(allowed), remedy)


def name(owner: str, field: str, value: Any, pattern: str, expected: str) -> str:
    """`value` if it is a string that matches all of `pattern`."""
    if isinstance(value, str) and len(value) <= 200 and re.fullmatch(pattern, value):
        return value
    refuse(owner, field, value, expected)


def instance(owner: str, field: str, value: object, kind: type) -> None:
    """Refuse anything but a `kind`."""
    if not isinstance(value, kind):
        refuse(owner, field, value, f"a {kind.__name__}")


def mapping(owner: str, data: Any) -> dict[str, Any]:
    """`data` if it is a dict, as a JSON object is read."""
    if not isinstance(data, dict):
        raise InvalidValueError(f"{owner}: got {type(data).__name__}; expected an object")
    return data


def sequence(owner: str, data: Any) -> list[Any]:
    """`data` if it is a list."""
    if not isinstance(data, list):
        raise InvalidValueError(f"{owner}: got {type(data).__name__}; expected a list")
    return data


def no_earlier_argument(
    owner: str, given: Mapping[str, object], renamed: Mapping[str, str]
) -> None:
    """Refuse an argument that release 0.1.1 had, and say what stands for it now."""
    for name in given:
        if name in renamed:
            raise InvalidValueError(
                f"{owner}: got {name}, an argument of torch-diode 0.1.1; expected {renamed[name]}; "
                "see docs/coming_from_0_1_1.md"
            )


def known_keys(owner: str, data: Any, known: Sequence[str], required: Sequence[str] = ()) -> None:
    """Refuse a mapping with an unknown key, or without a required one."""
    for key in mapping(owner, data):
        if key not in known:
            near = get_close_matches(str(key), known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else "known fields: " + ", ".join(known)
            raise InvalidValueError(f"{owner}: got an unknown field {str(key)[:80]!r}; {hint}")
    for key in required:
        if key not in data:
            raise InvalidValueError(f"{owner}: got no field {key!r}; expected one, add it")
