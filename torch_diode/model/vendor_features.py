"""What decides how long the vendor library takes: the features of ATen and of splits of K.

The library picks one of many kernels by rules of its own, so its time is a staircase: it depends on
how tiles of the sizes its kernels have fall on the chip, on whether K is worth splitting, on how
rows are aligned, and on sizes small enough for kernels made for them. All of it is per problem and
vectorised over tiles, so that one problem costs a few dozen array operations.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from torch_diode.model.features import LAUNCH_US, bounds, roofline_us
from torch_diode.model.problem_arrays import Floats, ProblemArrays
from torch_diode.types.hardware import Hardware

_TILES = (
    *((16, 64), (64, 16), (32, 32), (32, 64), (64, 32), (64, 64), (64, 128), (128, 64)),
    *((128, 128), (64, 256), (256, 64), (128, 192), (192, 128), (128, 256), (256, 128)),
)
_SPLIT_TILES = ((64, 64), (128, 128), (128, 256), (256, 128))
_SPLITS = (2, 4, 8, 16)
_BLOCK_BYTES = 128
"""Of K, in one step of a library kernel."""
_PARTIAL_BYTES = 8
"""A partial sum is written and read once more, in float32."""
_SMALL = (1, 8, 16, 32, 64)
_ALIGNMENTS = (4, 8, 16, 32, 128)

VENDOR_NAMES = (
    *(f"{m}x{n}_{what}" for what in ("time", "use", "tiles", "fill") for m, n in _TILES),
    *(f"{m}x{n}_split_{split}" for m, n in _SPLIT_TILES for split in _SPLITS),
    *(f"{size}_at_most_{small}" for size in "MNK" for small in _SMALL),
    *(f"{matrix}_aligned_{size}" for matrix in ("a", "b", "c") for size in _ALIGNMENTS),
    "log2_M_over_N",
    "log2_larger",
    "log2_smaller",
)
SPLIT_NAMES = (
    *(f"part_{name}" for name in VENDOR_NAMES),
    "log2_splits",
    "log2_part_K",
    "part_steps",
    "log_part_roofline",
    "log_sum",
)


def vendor_features(problems: ProblemArrays, hardware: Hardware) -> Floats:
    """The block of `VENDOR_NAMES`, one row a problem."""
    p = problems
    units = np.float32(max(hardware.units, 1))
    roof = roofline_us(p, hardware)[:, None]
    rate = bounds(p, hardware).rate[:, None]
    block_k = np.asarray(_BLOCK_BYTES / p.item[:, None], np.float32)
    steps = np.asarray(np.ceil(p.K[:, None] / block_k), np.float32)
    area, count = _tiles(p, _TILES)
    each = np.ceil(count / units)
    compute = each * area * steps * block_k * 2 / rate
    outputs = (p.B * p.M * p.N)[:, None]
    sizes = np.stack([p.M, p.N, p.K], axis=1)
    larger, smaller = np.maximum(p.M, p.N), np.minimum(p.M, p.N)
    columns = [
        np.log((compute + LAUNCH_US) / roof),
        count / (each * units),
        np.log2(count),
        outputs / (count * area),
        _split_times(p, hardware, steps, block_k),
        _flat(sizes[:, :, None] <= np.array(_SMALL)),
        _flat(_row_alignment(p)[:, :, None] >= np.array(_ALIGNMENTS)),
        np.log2(np.stack([p.M / p.N, larger, smaller], axis=1)),
    ]
    return np.concatenate(columns, axis=1, dtype=np.float32)


def split_features(problems: ProblemArrays, splits: Floats, hardware: Hardware) -> Floats:
    """The block of `SPLIT_NAMES`: K of each problem in so many parts, run as a batch of as many
    problems, whose results are then summed. One row a split, of one problem or of as many."""
    p = problems
    if len(p) != len(splits):
        p = p.take(np.zeros(len(splits), np.int64))
    depth = np.maximum(np.floor(p.K / splits), 1).astype(np.int64)
    low = p.low_bits.copy()
    low[:, 2] = depth & -depth
    part = replace(p, B=(p.B * splits).astype(np.float32), K=depth.astype(np.float32), low_bits=low)
    summed = p.B * p.M * p.N * (splits * p.item + p.out_item)
    sum_us = summed / np.float32(max(hardware.memory_gbps, 1) * 1e3) + np.float32(LAUNCH_US)
    roof = roofline_us(p, hardware)
    columns = [
        np.log2(splits),
        np.log2(part.K),
        np.ceil(part.K * p.item / _BLOCK_BYTES) / 16,
        np.log(roofline_us(part, hardware) / roof),
        np.log(sum_us / roof),
    ]
    block = vendor_features(part, hardware)
    return np.concatenate([block, np.stack(columns, axis=1)], axis=1, dtype=np.float32)


def _tiles(p: ProblemArrays, tiles: tuple[tuple[int, int], ...]) -> tuple[Floats, Floats]:
    """The area of each tile, and how many of it each problem has."""
    size = np.array(tiles, np.float32)
    count = np.ceil(p.M[:, None] / size[:, 0]) * np.ceil(p.N[:, None] / size[:, 1])
    return size[:, 0] * size[:, 1], np.asarray(count * p.B[:, None])


def _split_times(p: ProblemArrays, hardware: Hardware, steps: Floats, block_k: Floats) -> Floats:
    """What the larger tiles would take with the library's own split of K."""
    area, count = _tiles(p, _SPLIT_TILES)
    splits = np.array(_SPLITS, np.float32)
    each = np.ceil(count[:, :, None] * splits / np.float32(max(hardware.units, 1)))
    depth = (np.ceil(steps / splits) * block_k)[:, None, :]
    compute = each * area[:, None] * depth * 2 / bounds(p, hardware).rate[:, None, None]
    written = (p.B * p.M * p.N)[:, None] * splits * _PARTIAL_BYTES
    extra = written / np.float32(max(hardware.memory_gbps, 1) * 1e3)
    total = compute + extra[:, None, :] + LAUNCH_US
    ratio = np.log(total / roofline_us(p, hardware)[:, None, None])
    return _flat(ratio)


def _flat(block: npt.NDArray[Any]) -> Floats:
    """A row for each problem, also where there is none."""
    rows, first, second = block.shape
    return np.asarray(block.reshape(rows, first * second), np.float32)


def _row_alignment(p: ProblemArrays) -> npt.NDArray[np.floating]:
    """The largest power of two that divides a row's bytes, of A, of B and of the output."""
    low = p.low_bits
    inner_a = np.where(p.transpose_a > 0, low[:, 0], low[:, 2]) * p.item
    inner_b = np.where(p.transpose_b > 0, low[:, 2], low[:, 1]) * p.item
    return np.stack([inner_a, inner_b, low[:, 1] * p.out_item], axis=1)
