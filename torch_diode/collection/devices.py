"""Which GPUs a collection uses: all of a machine that are of one kind, or the one named."""

from __future__ import annotations

import os
from dataclasses import dataclass

from torch_diode.collection.workers.fork_safety import run_in_subprocess
from torch_diode.hardware import detect
from torch_diode.types.errors import InvalidValueError
from torch_diode.types.hardware import Hardware


@dataclass(frozen=True)
class Devices:
    """The chip, and for each timing process the device it runs on, as CUDA_VISIBLE_DEVICES has
    it."""

    hardware: Hardware
    names: tuple[str, ...]
    others: tuple[str, ...] = ()
    """Chips of another kind that are left alone."""


def find_devices(device: str | None, workers: int = 0) -> Devices:
    """The devices to time on; so many of them, or all (on the CPU: one process).

    Asked in another process: this one must not touch CUDA before it has forked its workers.
    """
    if device == "cpu":
        return Devices(detect(device), ("cpu",) * (workers or 1))
    found = run_in_subprocess(_chips, device or "cuda")
    hardware = found[0][1]
    alike = [visible for visible, chip in found if chip.name == hardware.name]
    others = tuple(chip.name for _, chip in found if chip.name != hardware.name)
    if workers > len(alike):
        raise InvalidValueError(
            f"--workers: got {workers}; expected at most {len(alike)}, one for each "
            f"{hardware.name} here; kernels timed beside each other on one GPU are timed wrong"
        )
    return Devices(hardware, tuple(alike[: workers or len(alike)]), others)


def _chips(device: str) -> list[tuple[str, Hardware]]:
    """Each GPU that `device` stands for, and what to call it so that CUDA sees it alone."""
    import torch

    first = detect(device)
    kind, _, index = device.partition(":")
    if index or kind != "cuda":
        return [(visible_name(int(index or 0)), first)]
    count = torch.cuda.device_count()
    return [(visible_name(i), detect(f"cuda:{i}")) for i in range(count)]


def visible_name(index: int) -> str:
    """What CUDA_VISIBLE_DEVICES says of the GPU with this index among those visible now."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return visible.split(",")[index].strip() if visible else str(index)
