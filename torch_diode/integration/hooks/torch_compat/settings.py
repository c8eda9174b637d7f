"""Settings of torch that decide how it compiles, and whether results may differ."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any, cast


def config_options() -> dict[str, Any]:
    """Inductor's options by name; each has a `default`."""
    import torch._inductor.config as inductor_config

    return cast("dict[str, Any]", vars(inductor_config)["_config"])


def compiles_in_subprocess() -> bool:
    """True if graphs are compiled in a subprocess, which has no torch-diode."""
    return _fx_compile_mode() == "SUBPROCESS"


def serializes_graphs() -> bool:
    """True if graphs are compiled from a serialized form, here or in a subprocess."""
    return _fx_compile_mode() in ("SERIALIZE", "SUBPROCESS")


def _fx_compile_mode() -> str:
    compile_fx = sys.modules.get("torch._inductor.compile_fx")
    return getattr(getattr(compile_fx, "fx_compile_mode", None), "name", "")


def compiles_ahead() -> bool:
    """True if the graph is compiled for another process (AOTInductor)."""
    from torch._inductor.virtualized import V

    return V.aot_compilation is True or getattr(V.graph, "aot_mode", False) is True


def batch_invariant() -> bool:
    """True if results must not depend on the batch size (an option since 2.13)."""
    import torch._inductor.config as inductor_config

    return bool(getattr(inductor_config, "batch_invariant", False))


def tf32_allowed() -> bool:
    """True if float32 products may use TF32; the older setting raises where the newer was used."""
    precision = float32_precision()
    return precision == "tf32" if isinstance(precision, str) else precision


def float32_precision() -> str | bool:
    """Torch's setting: a name such as `tf32`, or before those, whether TF32 is allowed."""
    import torch

    matmul = torch.backends.cuda.matmul
    precision = getattr(matmul, "fp32_precision", None)
    return precision if precision is not None else bool(matmul.allow_tf32)


def devices_in(example_inputs: Iterable[Any]) -> list[Any]:
    """The distinct devices of a graph's inputs, in order."""
    devices = (getattr(value, "device", None) for value in example_inputs)
    return list(dict.fromkeys(device for device in devices if device is not None))
