"""Fingerprint of a function: its compiled code and the plain values that code uses.

Compiled code rather than source: `inspect.getsource` reads the file as it is now, which may have
been edited since the import, and returns one text for two lambdas on one line.

Functions of the same module and functions in a closure are followed. Code imported from other
modules is named, not followed: a function that depends on such code should have a `version`
attribute, to be changed with it.
"""

from __future__ import annotations

from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

from torch_diode.types.candidate import Candidate, TritonGEMMConfig
from torch_diode.types.problem import MMShape

_PLAIN = {type(None), bool, int, float, complex, str, bytes, range, type(...)}
_PLAIN |= {MMShape, Candidate, TritonGEMMConfig}
"""Types whose `repr` is complete and the same in every process."""

_Seen = dict[FunctionType, int]
"""Functions met so far and their number, in the order in which they were met."""


class _NotPlainError(Exception):
    """A value that text cannot stand for: a tensor, a lock, an object with state."""


def code_text(fn: object) -> str | None:
    """Text that changes with whatever `fn` does and is the same in every process, or None where
    there is no such text: `fn` is not a Python function, or uses a value that is not plain."""
    if not isinstance(fn, FunctionType):
        return None
    try:
        return _function(fn, {})
    except (_NotPlainError, RecursionError):
        return None


def _function(fn: FunctionType, seen: _Seen) -> str:
    if fn in seen:
        return f"function #{seen[fn]}"
    seen[fn] = len(seen)
    try:
        cells = [cell.cell_contents for cell in fn.__closure__ or ()]
    except ValueError:  # a variable without a value yet
        raise _NotPlainError from None
    names = _names(fn.__code__) & fn.__globals__.keys()
    return "\n".join(
        [
            _code(fn.__code__, seen),
            *(_value(v, seen) for v in (cells, fn.__defaults__, fn.__kwdefaults__, vars(fn))),
            *(f"{name} = {_global(fn, name, seen)}" for name in sorted(names)),
        ]
    )


def _code(code: CodeType, seen: _Seen) -> str:
    constants = [
        _code(c, seen) if isinstance(c, CodeType) else _value(c, seen) for c in code.co_consts
    ]
    variables = code.co_names + code.co_varnames + code.co_freevars + code.co_cellvars
    handlers = getattr(code, "co_exceptiontable", b"")  # Python 3.11 and later
    arguments = (code.co_argcount, code.co_kwonlyargcount, code.co_flags)
    return repr((code.co_code, handlers, arguments, variables, constants))


def _names(code: CodeType) -> set[str]:
    nested = (_names(c) for c in code.co_consts if isinstance(c, CodeType))
    return set(code.co_names).union(*nested)


def _global(fn: FunctionType, name: str, seen: _Seen) -> str:
    value: Any = fn.__globals__[name]
    if isinstance(value, ModuleType):
        return value.__name__
    if isinstance(value, type | FunctionType | BuiltinFunctionType):
        module, path = value.__module__, value.__qualname__
        # A path with "<locals>" or "<lambda>" may stand for several functions.
        if module and module != fn.__globals__.get("__name__") and "<" not in path:
            return f"{module}.{path}"
    return _value(value, seen)


def _value(value: Any, seen: _Seen) -> str:
    kind = type(value)
    if kind in _PLAIN:
        return repr(value)
    if kind in (tuple, list):
        return f"{kind.__name__}({', '.join([_value(item, seen) for item in value])})"
    if kind in (set, frozenset):
        return f"{kind.__name__}({', '.join(sorted(_value(item, seen) for item in value))})"
    if kind is dict:
        pairs = [f"{_value(key, seen)}: {_value(item, seen)}" for key, item in value.items()]
        return f"dict({', '.join(pairs)})"
    if kind is FunctionType:
        return _function(value, seen)
    raise _NotPlainError
