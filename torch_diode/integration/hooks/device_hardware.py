"""The hardware behind a torch device: this machine's, or the one that `pretending` sets."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from torch_diode.types.hardware import Hardware

GPU_KINDS = ("cuda", "xpu")
DEVICE_TYPES = (*GPU_KINDS, "cpu")

_detected: dict[str, Hardware] = {}
_pretended: list[Hardware] = []


def hardware_of(device: Any) -> Hardware:
    """The hardware behind a torch device, detected once per device; for a CPU, per thread count."""
    is_cpu = str(device).startswith("cpu")
    if _pretended and (_pretended[-1].kind == "cpu") == is_cpu:
        return _pretended[-1]
    key = _cpu_key() if is_cpu else str(device)
    if key not in _detected:
        from torch_diode.hardware import detect

        _detected[key] = detect("cpu" if is_cpu else key)
    return _detected[key]


def _cpu_key() -> str:
    """A CPU with another number of threads is other hardware."""
    import torch

    return f"cpu with {torch.get_num_threads()} threads"


def detected() -> list[Hardware]:
    """All hardware detected so far."""
    return list({hardware.name: hardware for hardware in _detected.values()}.values())


@contextlib.contextmanager
def pretending(hardware: Hardware) -> Iterator[None]:
    """Take every device for this hardware inside the `with`."""
    _pretended.append(hardware)
    try:
        yield
    finally:
        _pretended.remove(hardware)
