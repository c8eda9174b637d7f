"""What Inductor derives of a matmul besides the config, asked for once for each kind of matmul.

Deriving it takes Inductor about a millisecond, most of it algebra on sizes that are plain numbers.
But nearly nothing of it depends on the sizes: matmuls that `releases.base_key` calls alike have
the same, and it is used again. That two are alike has to be seen first: Inductor is asked for a
second one of other sizes as well, and always where the two answers differ.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch._inductor.config as inductor_config

from torch_diode.integration.hooks import torch_compat
from torch_diode.integration.hooks.torch_compat import TemplateKwargs

AMD_KWARGS = ("waves_per_eu", "matrix_instr_nonkdim", "kpack")
CONFIG_KWARGS = frozenset(
    {"BLOCK_M", "BLOCK_N", "BLOCK_K", "GROUP_M", "num_stages", "num_warps", "EVEN_K", *AMD_KWARGS}
)
"""What a candidate's config puts in the place of a base's, whatever that was."""

_KEPT = 256


@dataclass
class _Kept:
    base: TemplateKwargs
    sizes: tuple[Any, ...]
    """Of the matmul it came from."""
    usable: bool | None = None
    """None until Inductor has been asked about other sizes."""


class TemplateKwargsCache:
    """Bases by what they depend on; bounded."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, _Kept] = {}
        self._lock = threading.Lock()

    def of(
        self,
        handler: Any,
        inputs: Any,
        template: Any,
        op: str,
        overrides: dict[str, Any],
        layout: Any,
    ) -> TemplateKwargs | None:
        """The base of a template's choices for these inputs; None where Inductor has none."""
        asked = (handler, inputs, template, op, overrides, layout)
        key = torch_compat.template_kwargs_key(*asked)
        kept = self._kept.get(key)
        if kept is not None and kept.usable:
            return TemplateKwargs(kept.base.kwargs, dict(kept.base.extra), kept.base.make, inputs)
        with autotuning():
            base = torch_compat.template_kwargs_of(*asked)
        if key is not None and base is not None and torch_compat.shares(base, inputs):
            self._keep(key, base, tuple(map(tuple, inputs.shapes_symbolic())))
        return base

    def _keep(self, key: Hashable, base: TemplateKwargs, sizes: tuple[Any, ...]) -> None:
        with self._lock:
            kept = self._kept.get(key)
            if kept is None:
                if len(self._kept) >= _KEPT:
                    self._kept.clear()
                # The inputs would keep the whole graph alive.
                self._kept[key] = _Kept(replace(base, inputs=None), sizes)
            elif kept.usable is None and kept.sizes != sizes:
                kept.usable = _telling(kept.base) == _telling(base)

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            self._kept.clear()


def _telling(base: TemplateKwargs) -> tuple[dict[str, Any], dict[str, Any]]:
    """What two bases have to agree in. An epilogue is a new function each time; its hash says
    which."""
    kwargs = {name: value for name, value in base.kwargs.items() if name not in CONFIG_KWARGS}
    return kwargs, {name: value for name, value in base.extra.items() if name != "epilogue_fn"}


@contextlib.contextmanager
def autotuning() -> Iterator[None]:
    """Inductor's templates yield choices under max-autotune only: on inside this, nowhere else."""
    with inductor_config.patch(
        {"max_autotune_gemm": True, "max_autotune_gemm_search_space": "DEFAULT"}
    ):
        yield


shared = TemplateKwargsCache()
