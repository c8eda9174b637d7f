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
import sys
import uuid
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
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


def callable_text(fn: Any) -> list[str]:
    """The texts that make up a function, or an object that is called like one."""
    kind = fn if isinstance(fn, FunctionType) else type(fn)
    reader = _Reader(getattr(fn, "__module__", None) or kind.__module__)
    where = f"{getattr(fn, '__module__', '')}.{getattr(fn, '__qualname__', '')}"
    if isinstance(fn, FunctionType):
        return [where, *reader.function(fn)]
    if isinstance(fn, _NAMED) and " at 0x" not in repr(fn):
        return [where]
    return [where, reader.instance(fn), *reader.function(kind.__call__)]


class _Reader:
    """Walks from one function to what it uses, each once: functions may call one another."""

    def __init__(self, module: str) -> None:
        self._module = module
        self._seen: set[int] = set()

    def function(self, fn: Any) -> list[str]:
        code = getattr(fn, "__code__", None)
        if code is None or id(code) in self._seen:
            return [_name(fn)]
        self._seen.add(id(code))
        keywords = sorted((fn.__kwdefaults__ or {}).items())
        return [
            *self._code(code),
            *(self._cell(cell) for cell in fn.__closure__ or ()),
            *(self.value(default) for default in fn.__defaults__ or ()),
            *(f"{name}={self.value(default)}" for name, default in keywords),
            *self._globals(code, fn.__globals__),
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
        if isinstance(value, (set, frozenset)):
            return "{" + ", ".join(sorted(map(self.value, value))) + "}"
        if isinstance(value, dict):
            pairs = (f"{self.value(k)}: {self.value(v)}" for k, v in value.items())
            return "{" + ", ".join(pairs) + "}"
        if type(value) in _PLAIN or isinstance(value, PurePath):
            return repr(value)
        if isinstance(value, Sequence):
            return "(" + ", ".join(map(self.value, value)) + ")"
        if isinstance(value, FunctionType):
            return "\n".join(self.function(value))
        if isinstance(value, np.ndarray):
            return f"{value.dtype}{value.shape}" + value.tobytes().hex()
        if isinstance(value, _NAMED):
            return _name(value)
        return _tensor(value) or self.instance(value)

    def instance(self, value: Any) -> str:
        """An object by its class and state, whatever its own text says or leaves out."""
        if id(value) in self._seen:
            return _name(value)
        self._seen.add(id(value))
        if isinstance(value, MethodType):
            return "\n".join([*self.function(value.__func__), self.instance(value.__self__)])
        if isinstance(value, functools.partial):
            return self.value((value.func, value.args, value.keywords))
        state = _state(value)
        if state is not None:
            return f"{_name(value)} {self.value(state)}"
        text = repr(value)
        return _of_this_process(value) if " at 0x" in text else text


def _tensor(value: Any) -> str:
    """A tensor by its bytes, which its own text has few of; empty for what is none."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(value, torch.Tensor):
        return ""
    if value.device.type != "cpu" or value.layout != torch.strided:
        return f"{_of_this_process(value)} {value._version}"
    # Read as it lies in memory: a compile may have turned what acts on tensors into tracing.
    storage = value.untyped_storage()
    laid = (value.dtype, *value.shape, value.stride(), value.storage_offset())
    return f"{laid}{ctypes.string_at(storage.data_ptr(), storage.nbytes()).hex()}"


def _of_this_process(value: Any) -> str:
    return f"{_name(value)} {_PROCESS} {id(value)}"


def _state(value: Any) -> dict[str, Any] | None:
    """What an object holds, by name; None for one that shows nothing, not written in Python."""
    if is_dataclass(value):
        return {field.name: getattr(value, field.name, None) for field in fields(value)}
    declared = [vars(part).get("__slots__") for part in type(value).__mro__]
    if not any(declared) and not hasattr(value, "__dict__"):
        return None
    slots = [name for part in type(value).__mro__ for name in vars(part) if _is_slot(part, name)]
    held = {name: getattr(value, name) for name in slots if hasattr(value, name)}
    return held | getattr(value, "__dict__", {})


def _is_slot(part: type, name: str) -> bool:
    return isinstance(vars(part)[name], MemberDescriptorType)


def _names(code: CodeType) -> set[str]:
    nested = (_names(part) for part in code.co_consts if isinstance(part, CodeType))
    return set(code.co_names).union(*nested)


def _name(value: Any) -> str:
    kind = value if hasattr(value, "__qualname__") else type(value)
    return f"{getattr(kind, '__module__', '')}.{kind.__qualname__}"
