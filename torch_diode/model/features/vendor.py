"""What decides how long the vendor library takes: the features of ATen and of splits of K.

The library picks one of many kernels by rules of its own, so its time is a staircase: it depends on
how tiles of the sizes its kernels have fall on the chip, on whether K is worth splitting, on how
rows are aligned, and on sizes small enough for kernels made for them. All of it is per problem and
vectorised over tiles, which lie along the first axis, before the problems.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from torch_diode.model.features.extractor import (
    LAUNCH_US,
    bounds,
    by_problem,
    chip,
    either,
    roofline_us,
)
from torch_diode.model.features.problem_arrays import Floats, ProblemArrays, Problems, Values
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
# The tiles, then those that K is split for; as arrays once, since for one problem making an array
# takes longer than anything done with it.
_ALL = [(m, n, 1) for m, n in _TILES] + [(m, n, s) for m, n in _SPLIT_TILES for s in _SPLITS]
_HEIGHTS, _WIDTHS, _PARTS = np.array(_ALL, np.float32).T[:, :, None]
_TILE_SIZES = np.stack([_HEIGHTS, _WIDTHS])
_AREAS = _HEIGHTS * _WIDTHS
_PARTIALS = np.where(_PARTS > 1, _PARTS * np.float32(_PARTIAL_BYTES), np.float32(0))
# What minus the sizes, and the alignments, have to be at least.
_LEAST = np.array([[-size for size in _SMALL]] * 3 + [_ALIGNMENTS] * 3, np.float32)[:, :, None]

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


def vendor_features(problems: Problems, hardware: Hardware) -> Floats:
    """The block of `VENDOR_NAMES`, one row a problem."""
    p, xp = problems, problems.xp
    units, bytes_a_us, _ = chip(hardware)
    limits = bounds(p, hardware)
    block_k = _BLOCK_BYTES / p.item
    along = np.ceil(p.sizes[1:3, None] / _TILE_SIZES)
    number = along[0] * along[1] * (_PARTS * p.B)
    each = np.ceil(number / units)
    depth = np.ceil(xp.ceil(p.K / block_k) / _PARTS) * (block_k * 2 / limits.rate)
    times = each * _AREAS * depth
    times += _PARTIALS * (limits.outputs / bytes_a_us)
    times += LAUNCH_US
    times /= limits.roofline_us
    np.log(times, out=times)
    count = len(_TILES)
    number, each = number[:count], each[:count]
    shape = (p.M / p.N, xp.maximum(p.M, p.N), xp.minimum(p.M, p.N))
    rows = np.array([-p.M, -p.N, -p.K, *_row_alignment(p)], np.float32).reshape(6, 1, -1)
    blocks = [
        times[:count],
        number / (each * units),
        np.log2(number),
        limits.outputs / (number * _AREAS[:count]),
        times[count:],
        (rows >= _LEAST).reshape(_LEAST.size, -1),
        by_problem([xp.log2(size) for size in shape]).T,
    ]
    return np.ascontiguousarray(np.concatenate(blocks, dtype=np.float32).T)


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
    sum_us = summed / chip(hardware).bytes_a_us + LAUNCH_US
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


def _row_alignment(p: Problems) -> tuple[Values, Values, Values]:
    """The largest power of two that divides a row's bytes, of A, of B and of the output."""
    low_m, low_n, low_k = p.low
    inner_a = either(p.transpose_a, low_m, low_k) * p.item
    inner_b = either(p.transpose_b, low_k, low_n) * p.item
    return inner_a, inner_b, low_n * p.out_item
