"""Checks of types' fields, and their JSON; errors name the field, the value and the remedy."""

from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from numbers import Real
from typing import Any, NoReturn, TypeVar, cast

from torch_diode.types.errors import InvalidValueError

MAX_SIZE = 2**31 - 1
SLUG = r"[a-z0-9]+([._+-][a-z0-9]+)*"
"""Pattern of a normalised name, such as nvidia-h200."""
VERSION = r"([0-9A-Za-z][0-9A-Za-z.+_-]*)?"
"""Pattern of a release such as 2.13.0, or nothing."""

_LONE_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
Parsed = TypeVar("Parsed", bound="JSONText")


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


def provenance_of(data: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """A file's provenance: names, each with a list of texts."""
    provenance = data.get("provenance", {})
    if not isinstance(provenance, dict) or not all(
        isinstance(name, str) and isinstance(texts, list) and all(isinstance(t, str) for t in texts)
        for name, texts in provenance.items()
    ):
        raise InvalidValueError("got a provenance that is not names with lists of texts")
    return {name: tuple(sorted(set(texts))) for name, texts in provenance.items()}


def loads(data: bytes) -> Any:
    """Parse standard JSON: no NaN, no duplicate keys, no unbounded nesting."""
    try:
        value = json.loads(
            data.decode("utf-8"), parse_constant=_no_constant, object_pairs_hook=_no_key_twice
        )
        if _LONE_SURROGATE.search(data):
            _encode(value).encode("utf-8")
    except RecursionError:
        raise InvalidValueError("got JSON nested too deeply; expected a few levels") from None
    except UnicodeEncodeError:
        raise InvalidValueError("got half of a surrogate pair; expected whole characters") from None
    except UnicodeDecodeError as fault:
        raise InvalidValueError(f"got bytes that are not UTF-8 at {fault.start}") from None
    except json.JSONDecodeError as fault:
        where = f"line {fault.lineno}, column {fault.colno}"
        raise InvalidValueError(f"not JSON: {fault.msg} ({where})") from None
    except InvalidValueError:
        raise
    except ValueError as fault:  # a number of thousands of digits
        raise InvalidValueError(f"not JSON that can be read: {fault!s:.120}") from None
    return value


def _no_constant(name: str) -> Any:
    raise InvalidValueError(f"got {name}; expected a finite number")


def _no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise InvalidValueError(f"got the key {twice!r:.90} twice in one object; remove one")
    return data


class JSONText:
    """A type as JSON text and back, by its `to_dict` and `from_dict`."""

    def serialize(self) -> str:
        """The JSON text on one line, which `parse` reads back."""
        return _encode(cast("Any", self).to_dict())

    @classmethod
    def parse(cls: type[Parsed], text: str) -> Parsed:
        """The object of a JSON text, read as strictly as a file."""
        instance(cls.__name__, "text", text, str)
        parsed: Parsed = cast("Any", cls).from_dict(loads(text.encode("utf-8", "surrogatepass")))
        return parsed
