"""Inductor's benchmark of a list of choices: listening to it, and the call it would time."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence
from typing import Any, cast

from torch_diode.types.errors import MissingPartError


def add_preprocessing(function: Callable[[list[Any]], list[Any]]) -> Callable[[], None]:
    """Pass every list of Inductor's choices through a function; returns the undo function."""
    import torch._inductor.select_algorithm as select

    select.add_preprocessing_fn(function)

    def undo() -> None:
        cache = select.get_algorithm_selector_cache()
        if function in cache.preprocessing_fns:
            cache.preprocessing_fns.remove(function)

    return undo


def launch_of(choice: Any, inputs: Sequence[Any], out: Any) -> Callable[[], Any]:
    """A function that runs a choice once on these tensors: the call Inductor would benchmark.

    Most choices have a benchmark request that creates it. The others (subgraphs; on 2.9 vendor
    kernels too) pass it to the benchmarker, which is patched to capture it.
    """
    request = getattr(choice, "bmreq", None)
    if request is not None:
        return cast("Callable[[], Any]", request.make_run_fn(*inputs, out=out))
    return _captured_launch(choice, inputs, out)


def _captured_launch(choice: Any, inputs: Sequence[Any], out: Any) -> Callable[[], Any]:
    from unittest import mock

    from torch._inductor.runtime.benchmarking import benchmarker

    calls: list[Callable[[], Any]] = []

    def capture(
        function: Callable[..., Any],
        arguments: Sequence[Any] | None = None,
        keywords: dict[str, Any] | None = None,
        **_: Any,
    ) -> float:
        calls.append(functools.partial(function, *(arguments or ()), **(keywords or {})))
        return 1.0

    with contextlib.ExitStack() as stack:
        for name in ("benchmark", "benchmark_gpu", "benchmark_cpu"):
            stack.enter_context(mock.patch.object(benchmarker, name, capture))
        choice.benchmark(*inputs, out=out)
    if not calls:
        raise MissingPartError(f"{type(choice).__name__} benchmarks itself without torch's help")
    return calls[-1]


def release_launch(choice: Any) -> None:
    """Free what `launch_of` loaded for a choice."""
    request = getattr(choice, "bmreq", None)
    if request is not None:
        request.cleanup_run_fn()
