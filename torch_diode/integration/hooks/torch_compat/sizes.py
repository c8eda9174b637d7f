"""Sizes that may be symbols: as numbers, bounds and ranges."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any


def known_at_most(size: Any, limit: int) -> bool:
    """True if a size cannot exceed a limit; adds no guard."""
    from torch._inductor.virtualized import V

    return bool(V.graph.sizevars.statically_known_leq(size, limit))


def plain_sizes(values: Iterable[Any]) -> tuple[int, ...] | None:
    """Sizes or strides as integers; None where one is a symbol."""
    try:
        return tuple([int(value) for value in values])
    except TypeError:
        return None


def hints(values: Sequence[Any]) -> tuple[int, ...]:
    """The sizes Inductor optimises for: symbols are replaced by their hints."""
    numbers = plain_sizes(values)
    if numbers is not None:
        return numbers
    import torch._inductor.config as inductor_config
    from torch._inductor.virtualized import V

    sizevars: Any = V.graph.sizevars
    if hasattr(sizevars, "optimization_hints"):
        sizes = sizevars.optimization_hints(values)
    else:
        fallback = inductor_config.unbacked_symint_fallback
        sizes = sizevars.size_hints(values, fallback=fallback)
    return tuple(int(value) for value in sizes)


def traced_size(value: Any) -> int:
    """A traced size as a number: a symbol's value when the program ran."""
    return int(value.node.hint) if hasattr(value, "node") else int(value)


def traced_size_or_none(value: Any) -> int | None:
    """The same; None for a size that is known only at run time."""
    if not hasattr(value, "node"):
        return int(value)
    hint = getattr(value.node, "hint", None)
    return hint if isinstance(hint, int) else None


def range_of(size: Any) -> str:
    """The range of a dynamic size, such as `2-512` or `2-`; empty for a number."""
    from torch._inductor.virtualized import V

    traced = hasattr(size, "node")
    expression = size.node.expr if traced else size
    if not getattr(expression, "free_symbols", None):
        return ""
    shapes = size.node.shape_env if traced else V.graph.sizevars.shape_env
    bounds = shapes.bound_sympy(expression)
    upper = str(bounds.upper) if str(bounds.upper).isdecimal() else ""
    return f"{bounds.lower}-{upper}"
