"""What fits a chip of flex attention's kernels: their shared memory, measured by compiling them.

`workflows/measure_attention.py` writes the file, without a GPU. A kernel's blocks depend on the
head dimension only through the next power of two, and dtypes of two bytes need the same.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

from torch_diode.candidates.gpu.compiled_resources import read_version
from torch_diode.types.candidate import KernelConfig
from torch_diode.types.hardware import Hardware

VERSION = 1
KINDS = {
    "forward": ("block_m", "block_n"),
    "backward": ("block_m1", "block_n1", "block_m2", "block_n2"),
    "decode": ("block_n",),
}
"""The blocks of each kernel."""
NEEDS = ("shared_bytes", "registers", "spilled_bytes")
PATH = Path(__file__).parent / "measurements" / "attention.json"
_SMALLEST_HEAD = 16
_SAME_MEMORY = {"sm_80": "sm_86", "sm_89": "sm_86", "sm_120": "sm_86"}
"""Architectures whose kernels need the shared memory of another's, as all that were compiled for
both do."""

Row = tuple[int, ...]
Table = dict[KernelConfig, Row]
"""The `NEEDS` of each config; -1 for shared memory where the compiler rejects it."""


def kernel_name(
    kind: str, precision: str, arch: str, head_dim: int, value_dim: int | None = None
) -> str:
    """Name of a group of measured kernels, such as `forward/bfloat16/256x128/sm_86`: the head
    dimension, and that of the values if it is another."""
    precision = "bfloat16" if precision == "float16" else precision
    dims = dict.fromkeys([padded(head_dim), padded(value_dim or head_dim)])
    return f"{kind}/{precision}/{'x'.join(map(str, dims))}/{arch}"


def padded(head_dim: int) -> int:
    """The head dimension as a kernel's blocks have it: a power of two."""
    return max(_SMALLEST_HEAD, 1 << max(0, head_dim - 1).bit_length())


def measured_attention(
    kind: str, precision: str, hardware: Hardware, head_dim: int, value_dim: int | None = None
) -> Table:
    """The measured kernels for this chip; empty if there are none."""
    arches = dict.fromkeys([_SAME_MEMORY.get(hardware.arch, hardware.arch), hardware.arch])
    names = [kernel_name(kind, precision, arch, head_dim, value_dim) for arch in arches]
    return {config: row for name in names for config, row in _tables().get(name, {}).items()}


def fits_chip(row: Row, hardware: Hardware, more: int = 0) -> bool:
    """True if a measured kernel can be launched on the chip, with that much more shared memory."""
    return row[0] >= 0 and row[0] + more <= hardware.shared_memory_per_block


def tile_of(config: KernelConfig, queries: int) -> tuple[int, int]:
    """The scores that a block holds at a time, and its rows and columns; a decode's rows are all
    queries."""
    blocks = [size for _, size in config.blocks]
    if len(blocks) == 1:
        blocks.append(padded(queries))
    pairs = [blocks[i : i + 2] for i in range(0, len(blocks), 2)]
    return max(rows * columns for rows, columns in pairs), max(map(sum, pairs))


def nearest(config: KernelConfig, others: Iterable[KernelConfig]) -> KernelConfig | None:
    """The nearest of the smaller configs, which may be itself: of the fewest halvings, stages
    given up before blocks."""
    smaller = [
        other for other in others if other.is_within(config) and other.num_warps <= config.num_warps
    ]
    return min(smaller, key=lambda other: distance(config, other), default=None)


def distance(config: KernelConfig, other: KernelConfig) -> tuple[int, ...]:
    """The distance of a smaller config: halvings and stages less, of these the halvings, warps
    less, and then the smaller sizes."""
    halved = sum(
        (mine // size).bit_length() - 1
        for (_, mine), (_, size) in zip(config.blocks, other.blocks, strict=True)
    )
    stages = config.num_stages - other.num_stages
    warps = config.num_warps - other.num_warps
    return (halved + stages, halved, warps, *(-size for size in other.sizes))


def configs_of(kind: str, rows: list[list[int]]) -> Iterator[tuple[KernelConfig, Row]]:
    """The configs and needs in a file's rows."""
    names = KINDS[kind]
    for row in rows:
        blocks, (stages, warps, *needs) = row[: len(names)], row[len(names) :]
        yield KernelConfig(tuple(zip(names, blocks, strict=True)), stages, warps), tuple(needs)


def read_measured(path: str | os.PathLike[str]) -> dict[str, list[list[int]]]:
    """Read a file of measured kernels: rows of blocks, stages, warps and `NEEDS`, by name."""
    data = read_version(path, VERSION, "measured kernels", "workflows/measure_attention.py")
    kernels: dict[str, list[list[int]]] = data["kernels"]
    return kernels


@lru_cache(maxsize=1)
def measured_digest() -> str:
    """A digest of the measurements; empty if there are none."""
    return hashlib.sha256(PATH.read_bytes()).hexdigest()[:16] if PATH.is_file() else ""


@lru_cache(maxsize=1)
def _tables() -> dict[str, Table]:
    if not PATH.is_file():
        return {}
    return {
        name: dict(configs_of(name.partition("/")[0], rows))
        for name, rows in read_measured(PATH).items()
    }
