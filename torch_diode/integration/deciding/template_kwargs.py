"""A cache of what Inductor derives for a template besides the config.

Deriving it takes Inductor about a millisecond, mostly algebra on sizes that are plain numbers, and
nearly none of it depends on the sizes: matmuls with the same `torch_compat.template_kwargs_key`
share it. As a check, Inductor derives it for two different sizes first; if the two differ, it is
derived every time.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch._inductor.config as inductor_config

from torch_diode._bounded_cache import BoundedCache
from torch_diode.integration.hooks import torch_compat
from torch_diode.integration.hooks.torch_compat import TemplateKwargs

AMD_KWARGS = ("waves_per_eu", "matrix_instr_nonkdim", "kpack")
CONFIG_KWARGS = frozenset(
    {"BLOCK_M", "BLOCK_N", "BLOCK_K", "GROUP_M", "num_stages", "num_warps", "EVEN_K", *AMD_KWARGS}
)
"""Keyword arguments that each candidate's config overrides."""

_CACHED_KWARGS = 256


@dataclass
class _Entry:
    derived: TemplateKwargs
    sizes: tuple[Any, ...]
    """Sizes of the matmul it was derived for."""
    usable: bool | None = None
    """None until it has been compared with another size's."""


class TemplateKwargsCache:
    """Derived keyword arguments by what they depend on."""

    def __init__(self) -> None:
        self._entries: BoundedCache[Hashable, _Entry] = BoundedCache(_CACHED_KWARGS)
        self._lock = threading.Lock()

    def get(
        self,
        handler: Any,
        inputs: Any,
        template: Any,
        op: str,
        overrides: dict[str, Any],
        layout: Any,
    ) -> TemplateKwargs | None:
        """The keyword arguments of a template for these inputs; None where Inductor has none."""
        arguments = (handler, inputs, template, op, overrides, layout)
        key = torch_compat.template_kwargs_key(*arguments)
        entry = self._entries.get(key)
        if entry is not None and entry.usable:
            return replace(entry.derived, extra=dict(entry.derived.extra), inputs=inputs)
        with autotuning():
            derived = torch_compat.template_kwargs_of(*arguments)
        if key is not None and derived is not None and torch_compat.is_shareable(derived, inputs):
            self._add(key, derived, tuple(map(tuple, inputs.shapes_symbolic())))
        return derived

    def _add(self, key: Hashable, derived: TemplateKwargs, sizes: tuple[Any, ...]) -> None:
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                # The inputs would keep the whole graph alive.
                self._entries[key] = _Entry(replace(derived, inputs=None), sizes)
            elif entry.usable is None and entry.sizes != sizes:
                entry.usable = _comparable(entry.derived) == _comparable(derived)


def _comparable(derived: TemplateKwargs) -> tuple[dict[str, Any], dict[str, Any]]:
    """Without the config, and without the epilogue function, new each time: its hash is there."""
    kwargs = {name: value for name, value in derived.kwargs.items() if name not in CONFIG_KWARGS}
    return kwargs, {name: value for name, value in derived.extra.items() if name != "epilogue_fn"}


@contextlib.contextmanager
def autotuning() -> Iterator[None]:
    """Max-autotune inside the `with`: Inductor's templates yield no choices without."""
    with inductor_config.patch(
        {"max_autotune_gemm": True, "max_autotune_gemm_search_space": "DEFAULT"}
    ):
        yield


shared = TemplateKwargsCache()
