"""Selection of a collection's devices: all GPUs of one kind, the one named, or the CPU."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

from torch_diode.collection.workers.fork_safety import run_in_subprocess
from torch_diode.hardware import detect
from torch_diode.types.errors import InvalidValueError
from torch_diode.types.hardware import Hardware

CPU = "cpu"


@dataclass(frozen=True)
class Devices:
    """The chip, and the CUDA_VISIBLE_DEVICES value of each timing process."""

    hardware: Hardware
    names: tuple[str, ...]
    others: tuple[str, ...] = ()
    """Chips of another kind, which are not used."""


def find_devices(device: str | None, workers: int = 0) -> Devices:
    """Devices to time on: `workers` of them, or all.

    Detected in another process: this one must not touch CUDA before it has forked its workers.
    """
    if is_cpu(device):
        return Devices(detect(device), (CPU,))
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


def is_cpu(device: str | None) -> bool:
    """True for the name of a CPU."""
    return (device or "").partition(":")[0] == CPU


def by_threads(hardware: Hardware, threads: Sequence[int] = ()) -> tuple[Hardware, ...]:
    """A CPU once per thread count, torch's own if there is none; a GPU as it is."""
    if hardware.kind != CPU:
        return (hardware,)
    counts = tuple(dict.fromkeys(threads)) or (hardware.threads,)
    if max(counts) > hardware.units:
        raise InvalidValueError(
            f"--threads: got {max(counts)}; expected at most {hardware.units}, the cores this "
            "process may use: threads that share a core wait for each other"
        )
    return tuple(replace(hardware, threads=count) for count in counts)


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
