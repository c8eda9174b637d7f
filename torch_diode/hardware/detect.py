"""Detection of this machine's hardware: CUDA, ROCm, XPU or the CPU."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from torch_diode.hardware.catalog import known, known_names, normalise
from torch_diode.hardware.cpu import detect_cpu
from torch_diode.types.errors import MissingPartError
from torch_diode.types.hardware import Hardware

_CUDA_NAMES = {
    "units": "multi_processor_count",
    "warp_size": "warp_size",
    "shared_memory_per_unit": "shared_memory_per_multiprocessor",
    "registers_per_unit": "regs_per_multiprocessor",
    "threads_per_unit": "max_threads_per_multi_processor",
    "l2_bytes": "L2_cache_size",
    "memory_bytes": "total_memory",
}


def detect(device: str | None = None) -> Hardware:
    """Hardware of a torch device (`cuda`, `cuda:1`, `xpu`, `cpu`); by default the GPU, if any."""
    import torch

    match = re.fullmatch(r"(cuda|xpu|cpu)(?::(\d{1,4}))?", device or _best_kind(torch))
    if match is None:
        raise MissingPartError(f"device: got {device!r}; expected cuda, cuda:N, xpu, xpu:N or cpu")
    kind, index = match[1], int(match[2] or 0)
    if kind == "cpu":
        return detect_cpu()
    backend = getattr(torch, kind)
    if not backend.is_available() or index >= backend.device_count():
        raise MissingPartError(f"device: got {device!r}; this machine has no such device")
    properties = backend.get_device_properties(index)
    if kind == "xpu":
        return from_xpu_properties(properties)
    return from_cuda_properties(properties, hip=torch.version.hip is not None)


def find(name: str, threads: int = 0) -> Hardware:
    """Hardware by its name: this machine's where it is the one, and otherwise the catalog's.

    `threads` are those of a CPU; by default as many as torch runs with here.
    """
    if normalise(name) not in known_names():
        here = detect()
        cpu = here if here.kind == "cpu" else detect_cpu(threads)
        found = next((chip for chip in (here, cpu) if chip.name == normalise(name)), None)
        return with_threads(found or known(name), threads)
    return with_threads(known(name), threads)


def with_threads(hardware: Hardware, threads: int = 0) -> Hardware:
    """The same CPU with so many threads, by default torch's here; any other chip as it is."""
    if hardware.kind != "cpu":
        return hardware
    import torch

    return replace(hardware, threads=threads or hardware.threads or torch.get_num_threads())


def _best_kind(torch: Any) -> str:
    return next((kind for kind in ("cuda", "xpu") if getattr(torch, kind).is_available()), "cpu")


def from_cuda_properties(properties: Any, hip: bool) -> Hardware:
    """Hardware from torch.cuda's properties (NVIDIA or AMD), completed by published figures."""
    read = {field: getattr(properties, name, 0) for field, name in _CUDA_NAMES.items()}
    read["shared_memory_per_block"] = getattr(properties, "shared_memory_per_block_optin", 0) or (
        getattr(properties, "shared_memory_per_block", 0)
    )
    read["clock_mhz"] = getattr(properties, "clock_rate", 0) // 1000
    if hip:
        arch = properties.gcnArchName.partition(":")[0]
        return _overlay(properties.name or arch, "rocm", arch, read)
    return _overlay(properties.name, "cuda", f"sm_{properties.major}{properties.minor}", read)


def from_xpu_properties(properties: Any) -> Hardware:
    """Hardware from torch.xpu's properties."""
    read = {
        "units": getattr(properties, "gpu_subslice_count", 0),
        "warp_size": max(getattr(properties, "sub_group_sizes", None) or [0]),
        "shared_memory_per_block": getattr(properties, "local_mem_size", 0),
        "memory_bytes": properties.total_memory,
    }
    arch = str(getattr(properties, "architecture", "") or "xpu")
    return _overlay(properties.name, "xpu", arch, read)


def _overlay(raw_name: str, kind: str, arch: str, read: dict[str, int]) -> Hardware:
    """Published properties of a chip, overridden by those read from the device."""
    name = normalise(raw_name)
    base = known(name) if name in known_names() else Hardware(name, kind, arch)
    reported: dict[str, Any] = {field: value for field, value in read.items() if value}
    return replace(base, kind=kind, arch=arch, **reported)
