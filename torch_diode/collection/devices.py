"""Selection of the GPUs of a collection: all of one kind, or the one named."""

from __future__ import annotations

import os
from dataclasses import dataclass

from torch_diode.collection.workers.fork_safety import run_in_subprocess
from torch_diode.hardware import detect
from torch_diode.types.errors import InvalidValueError
from torch_diode.types.hardware import Hardware


@dataclass(frozen=True)
class Devices:
    """The chip, and the CUDA_VISIBLE_DEVICES value of each timing process."""

    hardware: Hardware
    names: tuple[str, ...]
    others: tuple[str, ...] = ()
    """Chips of another kind, which are not used."""


def find_devices(device: str | None, workers: int = 0) -> Devices:
    """Devices to time on: `workers` of them, or all (on the CPU: one process).

    Detected in another process: this one must not touch CUDA before it has forked its workers.
    """
    if device == "cpu":
        return Devices(detect(device), ("cpu",) * (workers or 1))
    chips = run_in_subprocess(_chips, device or "cuda")
    hardware = chips[0][1]
    alike = [visible for visible, chip in chips if chip.name == hardware.name]
    others = tuple(chip.name for _, chip in chips if chip.name != hardware.name)
    if workers > len(alike):
        raise InvalidValueError(
            f"--workers: got {workers}; expected at most {len(alike)}, one per {hardware.name}: "
            "several processes on one GPU would disturb each other's timings"
        )
    return Devices(hardware, tuple(alike[: workers or len(alike)]), others)


def _chips(device: str) -> list[tuple[str, Hardware]]:
    """GPUs that `device` stands for, each with the CUDA_VISIBLE_DEVICES value that selects it."""
    import torch

    first = detect(device)
    kind, _, index = device.partition(":")
    if index or kind != "cuda":
        return [(visible_name(int(index or 0)), first)]
    count = torch.cuda.device_count()
    return [(visible_name(i), detect(f"cuda:{i}")) for i in range(count)]


def visible_name(index: int) -> str:
    """CUDA_VISIBLE_DEVICES value that selects the GPU with this index among those visible."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return visible.split(",")[index].strip() if visible else str(index)
