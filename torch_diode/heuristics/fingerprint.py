"""What is called as text that changes with what it does, and is the same in every process.

Covers a function's code, its defaults, the values it closes over, and the globals it names where
those are values or functions of the same module, and so on through them; of an object its class's
code and its state. What it imports from other modules is named, not followed: a function that leans
on such code should carry a `version` attribute, to be changed along with it. Where an object does
not show its state the text is of this object in this process alone: nothing is then reused that
another might have made.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import logging
import sys
import uuid
from collections import deque
from collections.abc import Callable
from datetime import date, time, timedelta
from pathlib import PurePath
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any

import numpy as np

_PLAIN = (int, float, complex, bool, str, bytes, range, type(None), type(...))
"""What says all of itself in its text; of others the text may leave something out."""
_PROCESS = uuid.uuid4().hex
_NAMED = (ModuleType, type, FunctionType, BuiltinFunctionType)
"""Global values of these kinds are what a name in the code stands for, and change with it."""
_VALUES = (int, float, complex, str, bytes, date, time, timedelta, BaseException)
"""A class made of one of these has something in it that no attribute shows, and its text does."""


def callable_fingerprint_text(fn: Any) -> list[str]:
    """The texts that make up a function, or an object that is called like one."""
    kind = fn if isinstance(fn, FunctionType) else type(fn)
    reader = _Reader(getattr(fn, "__module__", None) or kind.__module__)
    where = f"{getattr(fn, '__module__', '')}.{getattr(fn, '__qualname__', '')}"
    if isinstance(fn, _NAMED) and not isinstance(fn, FunctionType) and " at 0x" not in repr(fn):
        return [where]
    try:
        if isinstance(fn, FunctionType):
            return [where, reader.function(fn)]
        return [where, reader.instance(fn), reader.function(kind.__call__)]
    except RecursionError:
        return [where, _of_this_process(fn)]


class _Reader:
    """Walks from one function to what it uses, each once: functions may call one another."""

    def __init__(self, module: str) -> None:
        self._module = module
        self._open: list[int] = []
        """What is being read, from the outermost on."""
        self._read: dict[int, tuple[Any, str]] = {}
        """What has been read, and its text; held, so that nothing else takes its address."""

    def function(self, fn: Any) -> str:
        if getattr(fn, "__code__", None) is None:
            return _name(fn)
        return self._once(fn, lambda: "\n".join(self._function(fn)))

    def _once(self, value: Any, text: Callable[[], str]) -> str:
        """A short text for a long one, which is made when a thing is first met; one that leads back
        to itself is known there by how far back that is."""
        if id(value) in self._read:
            return self._read[id(value)][1]
        if id(value) in self._open:
            return f"{_name(value)} ^{len(self._open) - self._open.index(id(value))}"
        self._open.append(id(value))
        found = f"{_name(value)} {_digest(text().encode(errors='surrogatepass'))}"
        self._open.pop()
        self._read[id(value)] = (value, found)
        return found

    def _function(self, fn: Any) -> list[str]:
        keywords = sorted((fn.__kwdefaults__ or {}).items())
        return [
            *self._code(fn.__code__),
            *(self._cell(cell) for cell in fn.__closure__ or ()),
            *(self.value(default) for default in fn.__defaults__ or ()),
            *(f"{name}={self.value(default)}" for name, default in keywords),
            *self._globals(fn.__code__, fn.__globals__),
        ]

    def _code(self, code: CodeType) -> list[str]:
        inner = [c for c in code.co_consts if isinstance(c, CodeType)]
        constants = [self.value(c) for c in code.co_consts if not isinstance(c, CodeType)]
        nested = [text for part in inner for text in self._code(part)]
        return [code.co_code.hex(), " ".join(code.co_names), *constants, *nested]

    def _cell(self, cell: Any) -> str:
        try:
            return self.value(cell.cell_contents)
        except ValueError:  # a variable that has no value yet
            return ""

    def _globals(self, code: CodeType, values: dict[str, Any]) -> list[str]:
        texts = []
        for name in sorted(_names(code) & values.keys()):
            value = values[name]
            own = isinstance(value, FunctionType) and value.__module__ == self._module
            if own or not isinstance(value, _NAMED):
                texts.append(f"{name}={self.value(value)}")
        return texts

    def value(self, value: Any) -> str:
        """A value without its address in memory; sets in a fixed order."""
        if type(value) in _PLAIN or isinstance(value, PurePath):
            return repr(value)
        if isinstance(value, (set, frozenset)):
            return "{" + ", ".join(sorted(map(self.value, value))) + "}"
        if isinstance(value, dict):
            pairs = (f"{self.value(k)}: {self.value(v)}" for k, v in value.items())
            return "{" + ", ".join(pairs) + "}"
        if isinstance(value, (list, tuple, deque)):
            return "(" + ", ".join(map(self.value, value)) + ")"
        if isinstance(value, np.ndarray):
            return self._array(value)
        if isinstance(value, _NAMED):
            return self._named(value)
        if isinstance(value, logging.Logger):
            return f"logger {value.name}"
        return _tensor(value) or self.instance(value)

    def _array(self, value: np.ndarray[Any, Any]) -> str:
        if value.dtype.hasobject:
            return self.value(value.tolist())
        return f"{value.dtype}{value.shape}" + _digest(np.ascontiguousarray(value))

    def _named(self, value: Any) -> str:
        if isinstance(value, FunctionType):
            return self.function(value)
        if isinstance(value, ModuleType):
            return value.__name__
        owner = getattr(value, "__self__", None)
        if isinstance(value, BuiltinFunctionType) and not isinstance(owner, ModuleType | None):
            return f"{_name(value)} of {self.value(owner)}"
        return _name(value)

    def instance(self, value: Any) -> str:
        """An object by its class and state, whatever its own text says or leaves out."""
        return self._once(value, lambda: self._instance(value))

    def _instance(self, value: Any) -> str:
        if isinstance(value, MethodType):
            return "\n".join([self.function(value.__func__), self.instance(value.__self__)])
        if isinstance(value, functools.partial):
            return self.value((value.func, value.args, value.keywords))
        state = _state(value)
        text = "" if state and not isinstance(value, _VALUES) else repr(value)
        if " at 0x" in text:
            text = _of_this_process(value) if state is None else ""
        return f"{text} {self.value(state or {})}"


def _tensor(value: Any) -> str:
    """A tensor by its bytes, which its own text has few of; empty for what is none."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(value, torch.Tensor):
        return ""
    plain = type(value) in (torch.Tensor, torch.nn.Parameter) and value.layout == torch.strided
    if not plain or value.device.type != "cpu" or value.is_conj() or value.is_neg():
        return f"{_of_this_process(value)} {value._version}"
    # Read as it lies in memory: a compile may have turned what acts on tensors into tracing.
    start, size = value.data_ptr(), value.numel() * value.element_size()
    if not value.is_contiguous():
        start, size = value.untyped_storage().data_ptr(), value.untyped_storage().nbytes()
    laid = (value.dtype, *value.shape, value.stride(), value.is_contiguous())
    return f"{laid}{_digest((ctypes.c_char * size).from_address(start) if size else b'')}"


def _digest(data: Any) -> str:
    return hashlib.sha256(data).hexdigest()


def _of_this_process(value: Any) -> str:
    return f"{_name(value)} {_PROCESS} {id(value)}"


def _state(value: Any) -> dict[str, Any] | None:
    """What an object holds, by name, but for what it works out by itself; None for one that shows
    nothing, not written in Python."""
    kinds = type(value).__mro__
    declared = [vars(kind).get("__slots__") for kind in kinds]
    if not any(declared) and not hasattr(value, "__dict__"):
        return None
    slots = [name for kind in kinds for name in vars(kind) if _is(kind, name, MemberDescriptorType)]
    held = {name: getattr(value, name) for name in slots if hasattr(value, name)}
    own = getattr(value, "__dict__", {})
    cached = {n for n in own for kind in kinds if _is(kind, n, functools.cached_property)}
    return held | {name: own[name] for name in own if name not in cached}


def _is(kind: type, name: str, what: type) -> bool:
    return isinstance(vars(kind).get(name), what)


def _names(code: CodeType) -> set[str]:
    nested = (_names(part) for part in code.co_consts if isinstance(part, CodeType))
    return set(code.co_names).union(*nested)


def _name(value: Any) -> str:
    kind = value if hasattr(value, "__qualname__") else type(value)
    return f"{getattr(kind, '__module__', '')}.{kind.__qualname__}"
