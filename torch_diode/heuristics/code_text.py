"""A function as text that changes with what it does, and is the same in every process.

Covers its code, its defaults, the values it closes over, and the globals it names where those are
plain values or functions of the same module, and so on through them. What it imports from other
modules is named, not followed: a function that leans on such code should carry a `version`
attribute, to be changed along with it.
"""

from __future__ import annotations

from types import CodeType, FunctionType
from typing import Any

import numpy as np

_PLAIN = (int, float, complex, str, bytes, bool, type(None), tuple, list, dict, set, frozenset)


def function_text(fn: Any) -> list[str]:
    """The texts that make up a function."""
    return _Reader(getattr(fn, "__module__", "")).function(fn)


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
        for name in sorted(_names(code)):
            value = values.get(name)
            own = isinstance(value, FunctionType) and value.__module__ == self._module
            if name in values and (own or isinstance(value, _PLAIN)):
                texts.append(f"{name}={self.value(value)}")
        return texts

    def value(self, value: Any) -> str:
        """A value without its address in memory; sets in a fixed order."""
        if isinstance(value, (set, frozenset)):
            return "{" + ", ".join(sorted(map(self.value, value))) + "}"
        if isinstance(value, dict):
            pairs = (f"{self.value(k)}: {self.value(v)}" for k, v in value.items())
            return "{" + ", ".join(pairs) + "}"
        if isinstance(value, (list, tuple)):
            return "(" + ", ".join(map(self.value, value)) + ")"
        if isinstance(value, FunctionType):
            return "\n".join(self.function(value))
        if isinstance(value, np.ndarray):
            return f"{value.dtype}{value.shape}" + value.tobytes().hex()
        text = repr(value)
        return _name(value) if " at 0x" in text else text


def _names(code: CodeType) -> set[str]:
    nested = (_names(part) for part in code.co_consts if isinstance(part, CodeType))
    return set(code.co_names).union(*nested)


def _name(value: Any) -> str:
    kind = value if hasattr(value, "__qualname__") else type(value)
    return f"{kind.__module__}.{kind.__qualname__}"
