"""Features of vendor library calls: ATen, and splits of K.

The library picks one of many kernels by rules of its own, so its time has steps: it depends on how
tiles of its kernels' sizes fill the chip, on whether K is worth splitting, on the alignment of
rows, and on sizes small enough for special kernels. Features are per problem and vectorised over
tiles, which lie along the first axis, before the problems.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from torch_diode.model.features.names import (
    ALIGNMENTS,
    LIBRARY_TILES,
    SMALL_SIZES,
    SPLIT_TILES,
    SPLITS,
)
from torch_diode.model.features.problem_arrays import one_row_per_problem, select
from torch_diode.model.features.roofline import LAUNCH_US, bounds, chip_rates, roofline_us

if TYPE_CHECKING:
    from torch_diode.model.features.problem_arrays import Floats, ProblemArrays, Problems, Values
    from torch_diode.types.hardware import Hardware

_BLOCK_BYTES = 128
"""Bytes of K per step of a library kernel."""
_PARTIAL_BYTES = 8
"""Traffic per partial sum: written and read again in float32."""
# The tiles, then those of split K; as arrays made once, since for one problem making an array takes
# longer than anything done with it.
_ALL = [(m, n, 1) for m, n in LIBRARY_TILES] + [(m, n, s) for m, n in SPLIT_TILES for s in SPLITS]
_HEIGHTS, _WIDTHS, _PARTS = np.array(_ALL, np.float32).T[:, :, None]
_TILE_SIZES = np.stack([_HEIGHTS, _WIDTHS])
_AREAS = _HEIGHTS * _WIDTHS
_PARTIALS = np.where(_PARTS > 1, _PARTS * np.float32(_PARTIAL_BYTES), np.float32(0))
# Lower bounds on minus the sizes and on the alignments.
_LEAST = np.array([[-size for size in SMALL_SIZES]] * 3 + [ALIGNMENTS] * 3, np.float32)[:, :, None]


def vendor_features(problems: Problems, hardware: Hardware) -> Floats:
    """Block of `VENDOR_NAMES`, one row per problem."""
    p, xp = problems, problems.xp
    units, bytes_a_us, _ = chip_rates(hardware)
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
    count = len(LIBRARY_TILES)
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
        one_row_per_problem([xp.log2(size) for size in shape]).T,
    ]
    return np.ascontiguousarray(np.concatenate(blocks, dtype=np.float32).T)


def split_features(problems: ProblemArrays, splits: Floats, hardware: Hardware) -> Floats:
    """Block of `SPLIT_NAMES`: K of each problem in `splits` parts, run as a batch of as many
    problems, whose results are then summed. One row per split: of one problem, or of as many."""
    p = problems
    if len(p) != len(splits):
        p = p.take(np.zeros(len(splits), np.int64))
    depth = np.maximum(np.floor(p.K / splits), 1).astype(np.int64)
    low = p.low_bits.copy()
    low[:, 2] = depth & -depth
    part = replace(p, B=(p.B * splits).astype(np.float32), K=depth.astype(np.float32), low_bits=low)
    summed = p.B * p.M * p.N * (splits * p.item + p.out_item)
    sum_us = summed / chip_rates(hardware).bytes_a_us + LAUNCH_US
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
    """Largest power of two that divides a row's bytes, of A, of B and of the output."""
    low_m, low_n, low_k = p.low
    inner_a = select(p.transpose_a, low_m, low_k) * p.item
    inner_b = select(p.transpose_b, low_k, low_n) * p.item
    return inner_a, inner_b, low_n * p.out_item
