"""Identity of a CPU: microarchitecture, instruction sets, caches, cores and torch's threads.

The name of a CPU is its microarchitecture (`amd-zen4`, `intel-sapphire-rapids`,
`arm-neoverse-v2`): brand names differ within one microarchitecture and virtual machines hide them,
while vendor, family and model are always there. A CPU that is not in the tables is named by its
brand. The number of threads torch runs with belongs to the hardware: a timing taken with two
threads says nothing about sixty-four.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch_diode.hardware.catalog import known, known_names, normalise
from torch_diode.types.hardware import Hardware

# Ranges of model numbers by family, as the Linux kernel assigns them (arch/x86/kernel/cpu/amd.c).
_AMD: dict[int, tuple[tuple[int, int, str], ...]] = {
    0x17: (
        (0x00, 0x2F, "zen1"), (0x30, 0x4F, "zen2"), (0x50, 0x5F, "zen1"),
        (0x60, 0x7F, "zen2"), (0x90, 0x91, "zen2"), (0xA0, 0xAF, "zen2"),
    ),
    0x19: ((0x00, 0x0F, "zen3"), (0x10, 0x1F, "zen4"), (0x20, 0x5F, "zen3"), (0x60, 0xAF, "zen4")),
    0x1A: (
        (0x00, 0x2F, "zen5"), (0x40, 0x4F, "zen5"), (0x50, 0x5F, "zen6"),
        (0x60, 0x7F, "zen5"), (0x80, 0xAF, "zen6"), (0xC0, 0xCF, "zen6"),
    ),
}  # fmt: skip
# Model numbers of family 6, as in the Linux kernel (arch/x86/include/asm/intel-family.h).
_INTEL = {
    0x3C: "haswell", 0x3F: "haswell", 0x45: "haswell", 0x46: "haswell",
    0x3D: "broadwell", 0x47: "broadwell", 0x4F: "broadwell", 0x56: "broadwell",
    0x4E: "skylake", 0x5E: "skylake",
    0x8E: "kaby-lake", 0x9E: "kaby-lake", 0xA5: "comet-lake", 0xA6: "comet-lake",
    0x6A: "ice-lake", 0x6C: "ice-lake", 0x7D: "ice-lake", 0x7E: "ice-lake",
    0x8C: "tiger-lake", 0x8D: "tiger-lake", 0xA7: "rocket-lake",
    0x97: "alder-lake", 0x9A: "alder-lake", 0xB7: "raptor-lake", 0xBA: "raptor-lake",
    0xBF: "raptor-lake", 0xAA: "meteor-lake", 0xAC: "meteor-lake", 0xBD: "lunar-lake",
    0xB5: "arrow-lake", 0xC5: "arrow-lake", 0xC6: "arrow-lake",
    0x8F: "sapphire-rapids", 0xCF: "emerald-rapids",
    0xAD: "granite-rapids", 0xAE: "granite-rapids", 0xAF: "sierra-forest",
}  # fmt: skip
_INTEL_SKYLAKE_SERVER = 0x55
# First microarchitecture with matrix instructions of each kind, newest first.
_INTEL_WITH_AMX = ("sapphire-rapids", "emerald-rapids", "granite-rapids")
_INTEL_AMX = {"amx_fp16": "granite-rapids", "amx_tile": "sapphire-rapids"}
# Part numbers by implementer, as in the Linux kernel (arch/arm64/include/asm/cputype.h).
_ARM = {
    (0x41, 0xD0C): "arm-neoverse-n1", (0x41, 0xD40): "arm-neoverse-v1",
    (0x41, 0xD49): "arm-neoverse-n2", (0x41, 0xD4F): "arm-neoverse-v2",
    (0x41, 0xD84): "arm-neoverse-v3", (0x41, 0xD8E): "arm-neoverse-n3",
    (0x41, 0xD08): "arm-cortex-a72", (0x41, 0xD0B): "arm-cortex-a76",
    (0xC0, 0xAC3): "ampere-one", (0xC0, 0xAC4): "ampere-one-a",
}  # fmt: skip
_BRAND_NOISE = re.compile(
    r"\((?:r|tm)\)|\bcpu\b|\bprocessor\b|@.*$|\b\d+(?:th gen|-core)\b", re.IGNORECASE
)
INSTRUCTION_SETS = (
    "avx", "avx2", "fma", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16",
    "amx_tile", "amx_bf16", "amx_int8", "amx_fp16", "asimd", "sve", "sve2", "bf16", "i8mm",
)  # fmt: skip
"""The flags that decide which matrix kernels can run, in the kernel's spelling."""
_CPUINFO = Path("/proc/cpuinfo")
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


def detect_cpu(threads: int = 0) -> Hardware:
    """The CPU of this machine, with the threads torch uses now or, if given, those.

    What the machine does not tell, such as its rates, is the catalog's.
    """
    info = _read_cpuinfo()
    name, caches = cpu_name(info), dict(_read_caches(_CACHES))
    read = {
        "units": _usable_cores(),
        "instruction_sets": instruction_sets(info),
        "l1_bytes": caches.get(1, 0),
        "l2_bytes": caches.get(2, 0),
        "l3_bytes": caches.get(3, 0),
        "memory_bytes": _memory_bytes(),
    }
    arch = platform.machine()
    base = known(name) if name in known_names() else Hardware(name, "cpu", arch)
    found: dict[str, Any] = {field: value for field, value in read.items() if value}
    return replace(base, arch=arch, threads=threads or _torch_threads(), **found)


def cpu_name(info: Mapping[str, str]) -> str:
    """The microarchitecture's name from the fields of /proc/cpuinfo, else the normalised brand."""
    found = _x86_name(info) or _arm_name(info)
    if found:
        return found
    brand = info.get("model name") or info.get("hardware") or platform.processor()
    text = _BRAND_NOISE.sub(" ", brand).strip()
    return normalise(text or platform.machine() or "unknown")


def instruction_sets(info: Mapping[str, str]) -> tuple[str, ...]:
    """The instruction sets for matrix kernels this CPU reports."""
    flags = set((info.get("flags") or info.get("features") or "").split())
    return tuple(name for name in INSTRUCTION_SETS if name in flags)


def parse_cpuinfo(text: str) -> dict[str, str]:
    """The fields of the first processor in /proc/cpuinfo, keys in lower case."""
    fields: dict[str, str] = {}
    for line in text.splitlines():
        key, separator, value = line.partition(":")
        if separator:
            fields.setdefault(key.strip().lower(), value.strip())
    return fields


def _x86_name(info: Mapping[str, str]) -> str:
    family, model = _number(info, "cpu family"), _number(info, "model")
    if info.get("vendor_id") == "AuthenticAMD":
        for low, high, name in _AMD.get(family, ()):
            if low <= model <= high:
                return f"amd-{name}"
    if info.get("vendor_id") == "GenuineIntel" and family == 6:
        if model == _INTEL_SKYLAKE_SERVER:
            return f"intel-{_skylake_server(_number(info, 'stepping'))}"
        if model in _INTEL:
            return f"intel-{_unmasked(_INTEL[model], instruction_sets(info))}"
    return ""


def _unmasked(name: str, sets: Sequence[str]) -> str:
    """The microarchitecture, or, where a virtual machine reports the model number of one without
    the matrix instructions it has, the first with those."""
    if name in _INTEL_WITH_AMX:
        return name
    return next((first for flag, first in _INTEL_AMX.items() if flag in sets), name)


def _skylake_server(stepping: int) -> str:
    """Three generations of servers share one model number and differ in their stepping."""
    if stepping >= 10:
        return "cooper-lake"
    return "cascade-lake" if stepping >= 5 else "skylake-sp"


def _arm_name(info: Mapping[str, str]) -> str:
    key = (_number(info, "cpu implementer"), _number(info, "cpu part"))
    return _ARM.get(key, "")


def _number(info: Mapping[str, str], name: str) -> int:
    try:
        return int(info.get(name, ""), 0)
    except ValueError:
        return -1


def _read_cpuinfo() -> dict[str, str]:
    if not _CPUINFO.exists():
        return {}
    info = parse_cpuinfo(_CPUINFO.read_text(errors="replace"))
    if "amx_tile" in info.get("flags", "").split() and _has_amx_fp16():
        info["flags"] += " amx_fp16"
    return info


def _has_amx_fp16() -> bool:
    """Whether torch finds these instructions, which /proc/cpuinfo does not list."""
    import torch

    return bool(getattr(torch.cpu, "_is_amx_fp16_supported", bool)())


def _read_caches(folder: Path) -> Iterator[tuple[int, int]]:
    """Level and bytes of each data cache of one core."""
    for index in sorted(folder.glob("index*")):
        if (index / "type").read_text().strip() != "Instruction":
            level = int((index / "level").read_text())
            yield level, parse_size((index / "size").read_text())


def parse_size(text: str) -> int:
    """Bytes of a size as sysfs writes it, such as `512K`."""
    match = re.fullmatch(r"(\d+)([KMG]?)", text.strip())
    return int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[match[2]] if match else 0


def _usable_cores() -> int:
    """Cores this process may run on: containers and `taskset` give fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _torch_threads() -> int:
    import torch

    return torch.get_num_threads()


def _memory_bytes() -> int:
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return 0
