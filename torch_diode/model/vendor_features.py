"""What decides how long the vendor library takes: the features of ATen and of splits of K.

The library picks one of many kernels by rules of its own, so its time is a staircase: it depends on
how tiles of the sizes its kernels have fall on the chip, on whether K is worth splitting, on how
rows are aligned, and on sizes small enough for kernels made for them. All of it is per problem and
vectorised over tiles, so that one problem costs a few dozen array operations.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from torch_diode.model.features import LAUNCH_US, Bounds, bounds, roofline_us
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
# As arrays once: for one problem, making an array takes longer than anything done with it.
_TILE_M, _TILE_N = np.array(_TILES, np.float32).T
_AREAS = _TILE_M * _TILE_N
_SPLIT_AT = [_TILES.index(tile) for tile in _SPLIT_TILES]
_SPLIT_AREAS = _AREAS[_SPLIT_AT, None]
_SPLIT_COUNTS = np.array(_SPLITS, np.float32)
_SMALL_SIZES, _ALIGNED_SIZES = np.array(_SMALL), np.array(_ALIGNMENTS)

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
    count, tiles = len(p), len(_TILES)
    units = np.float32(max(hardware.units, 1))
    limits = bounds(p, hardware)
    item, rate, roof = p.item[:, None], limits.rate[:, None], limits.roofline_us[:, None]
    block_k = np.float32(_BLOCK_BYTES) / item
    steps = np.ceil(p.K[:, None] / block_k)
    number = np.ceil(p.M[:, None] / _TILE_M) * np.ceil(p.N[:, None] / _TILE_N) * p.B[:, None]
    each = np.ceil(number / units)
    out = np.empty((count, len(VENDOR_NAMES)), np.float32)
    by_tile = out[:, : 4 * tiles].reshape(count, 4, tiles)
    compute = each * _AREAS * steps * block_k * 2 / rate
    np.log((compute + LAUNCH_US) / roof, out=by_tile[:, 0])
    np.divide(number, each * units, out=by_tile[:, 1])
    np.log2(number, out=by_tile[:, 2])
    np.divide(limits.outputs[:, None], number * _AREAS, out=by_tile[:, 3])
    start = 4 * tiles
    for block in (
        _split_times(limits, hardware, number[:, _SPLIT_AT], steps, block_k),
        p.sizes[1:].T[:, :, None] <= _SMALL_SIZES,
        _row_alignment(p)[:, :, None] >= _ALIGNED_SIZES,
    ):
        end = start + block.shape[1] * block.shape[2]
        out[:, start:end].reshape(block.shape)[:] = block
        start = end
    out[:, -3] = p.M / p.N
    np.maximum(p.M, p.N, out=out[:, -2])
    np.minimum(p.M, p.N, out=out[:, -1])
    np.log2(out[:, -3:], out=out[:, -3:])
    return out


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


def _split_times(
    limits: Bounds, hardware: Hardware, number: Floats, steps: Floats, block_k: Floats
) -> Floats:
    """What the larger tiles, so many of each, would take with the library's own split of K:
    problems by tiles by splits."""
    each = np.ceil(number[:, :, None] * _SPLIT_COUNTS / np.float32(max(hardware.units, 1)))
    depth = (np.ceil(steps / _SPLIT_COUNTS) * block_k)[:, None, :]
    compute = each * _SPLIT_AREAS * depth * 2 / limits.rate[:, None, None]
    written = limits.outputs[:, None] * _SPLIT_COUNTS * _PARTIAL_BYTES
    extra = written / np.float32(max(hardware.memory_gbps, 1) * 1e3)
    total = compute + extra[:, None, :] + LAUNCH_US
    return np.asarray(np.log(total / limits.roofline_us[:, None, None]))


def _row_alignment(p: ProblemArrays) -> npt.NDArray[np.floating]:
    """The largest power of two that divides a row's bytes, of A, of B and of the output."""
    low = p.low_bits
    inner_a = np.where(p.transpose_a > 0, low[:, 0], low[:, 2]) * p.item
    inner_b = np.where(p.transpose_b > 0, low[:, 2], low[:, 1]) * p.item
    return np.stack([inner_a, inner_b, low[:, 1] * p.out_item], axis=1)
