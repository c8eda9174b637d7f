"""Features of a problem, of its candidates, and of the two together.

Training and compiling share this one extractor. Its three blocks are each computed no more often
than they change: the problem's, the candidates' for one kind of problem (cached when serving), and
the joint ones; `vendor` has the features of the vendor library's models. Everything is float32 and
vectorised; for a single problem, whatever needs no array is computed in plain numbers by the same
formulas.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from torch_diode.candidates.gpu.resources import (
    blocks_per_unit,
    resources_of,
    uses_matrix_unit_on_shared,
)
from torch_diode.model.features.names import DIVISORS, JOINT_NAMES, PRECISIONS, TEMPLATES
from torch_diode.model.features.problem_arrays import one_row_per_problem, precision_code, select
from torch_diode.model.features.roofline import LAUNCH_US, bounds, chip_rates
from torch_diode.types.problem import BIASES, DTYPE_BYTES, OPS

if TYPE_CHECKING:
    from torch_diode.model.features.problem_arrays import Floats, Problems, Values
    from torch_diode.types.candidate_arrays import Candidates
    from torch_diode.types.hardware import Hardware
    from torch_diode.types.problem import MMShape

_LATENCY_US = 0.5
_L2_OVER_MEMORY = 2.5
_LONGEST_US = 1e9
_LARGEST_LOW_BIT = 256
_ALIGNED_BYTES = 16


@dataclass(frozen=True, eq=False)
class ConfigArrays:
    """Candidates as the joint features take them; blocks are 1 where a candidate has no config."""

    blocks: Floats
    """Rows for M, N and K."""
    step_us: Floats
    """Time of one step along K of one tile: rows for its unit's arithmetic and for the L2."""
    latency_us: Floats
    """Wait between steps, shared among the stages."""
    stages: Floats
    group_m: Floats
    """At most the number of tiles that run at once."""
    resident: Floats
    at_once: Floats
    """Tiles that run on the whole chip at a time."""
    log_kept_busy: Floats
    """log2 of one resident tile's warps and of its bytes in flight: a row each."""
    loaded: Floats
    """Bytes a thread loads for a step along K: rows for A and for B."""
    features: Floats
    """Block of `CONFIG_NAMES`; all zero where a candidate has no config."""

    def __len__(self) -> int:
        return len(self.stages)


def problem_features(problems: Problems, hardware: Hardware) -> Floats:
    """Block of `PROBLEM_NAMES`, one row per problem."""
    p, xp = problems, problems.xp
    b = bounds(p, hardware)
    low = p.low
    pieces = (*_pieces(p), xp.minimum(low[1] * p.out_item, _ALIGNED_BYTES))
    columns = [
        *map(xp.log2, (p.B, p.M, p.N, p.K, b.flops, b.moved, b.flops / b.moved, b.outputs)),
        *map(xp.log, (b.roofline_us, b.compute_us / b.memory_us)),
        *(p.op == number for number in range(len(OPS))),
        *(p.precision == number for number in range(len(PRECISIONS))),
        *(p.transpose_a, p.transpose_b),
        *(p.bias == number for number in range(1, len(BIASES))),
        *(size >= divisor for size in low for divisor in DIVISORS),
        *(xp.log2(xp.minimum(size, _LARGEST_LOW_BIT)) / 8 for size in low),
        *(piece == _ALIGNED_BYTES for piece in pieces),
        *(xp.log2(piece) / 4 for piece in pieces),
        xp.log2(select(p.transpose_a, p.M, p.K) * p.item),
        xp.log2(select(p.transpose_b, p.K, p.N) * p.item),
    ]
    return one_row_per_problem(columns)


def _pieces(p: Problems) -> tuple[Values, Values]:
    """Bytes per load of A and of B, 16 at most, by the alignment of their rows."""
    low_m, low_n, low_k = p.low
    return (
        p.xp.minimum(select(p.transpose_a, low_m, low_k) * p.item, _ALIGNED_BYTES),
        p.xp.minimum(select(p.transpose_b, low_k, low_n) * p.item, _ALIGNED_BYTES),
    )


def config_arrays(candidates: Candidates, kind: MMShape, hardware: Hardware) -> ConfigArrays:
    """Compute what depends on the candidates and on dtypes and layout, but not on sizes."""
    f = candidates.fields
    block_m, block_n, block_k, warps, group = (
        np.maximum(f[name], 1).astype(np.float32)
        for name in ("block_m", "block_n", "block_k", "num_warps", "group_m")
    )
    needs = resources_of(candidates, kind, hardware)
    threads = warps * (hardware.warp_size or 32)
    persistent = candidates.is_template(TEMPLATES[2])
    blocks = blocks_per_unit(needs, candidates, hardware)
    resident = np.where(persistent, 1, blocks).astype(np.float32)
    shared_limit = max(hardware.shared_memory_per_block, 1)
    item = DTYPE_BYTES[kind.dtype]
    loaded = (block_m + block_n) * block_k * item
    columns = [
        *(candidates.is_template(name) for name in TEMPLATES),
        *np.log2([block_m, block_n, block_k]),
        f["num_stages"],
        np.log2(warps),
        np.log2(group),
        np.log2(np.maximum(f["split_k"], 1)),
        uses_matrix_unit_on_shared(candidates, kind, hardware),
        needs.shared_bytes / shared_limit,
        needs.registers / 255,
        np.log2(resident),
        np.log2(block_m * block_n / threads),
        np.log2(loaded / threads),
    ]
    features = np.stack(columns, axis=1, dtype=np.float32, casting="unsafe")
    features[f["block_m"] == 0] = 0
    stages = np.maximum(f["num_stages"], 1).astype(np.float32)
    units, bytes_a_us, rates = chip_rates(hardware)
    step_us = block_m * block_n * block_k * (2 / rates[precision_code(kind)])
    return ConfigArrays(
        blocks=np.stack([block_m, block_n, block_k]),
        step_us=np.stack([step_us, loaded / (bytes_a_us * _L2_OVER_MEMORY)]),
        latency_us=_LATENCY_US / stages,
        stages=stages,
        group_m=np.minimum(group, units * resident),
        resident=resident,
        at_once=units * resident,
        log_kept_busy=np.log2([warps, stages * loaded]),
        loaded=np.stack([block_m, block_n]) * (block_k * item / threads),
        features=features,
    )


def joint_features(
    problems: Problems, configs: ConfigArrays, hardware: Hardware, out: Floats | None = None
) -> Floats:
    """Block of `JOINT_NAMES`, one row per config: of one problem, or of as many problems.

    `out`, if given, is filled with one row per feature, and its transpose returned. Features are
    computed several at a time: numpy's cost per call exceeds the arithmetic.
    """
    p, c = problems, configs
    units, bytes_a_us, _ = chip_rates(hardware)
    if out is None:
        out = np.empty((len(JOINT_NAMES), len(c)), np.float32)
    exact = p.sizes[1:] / c.blocks
    counts = np.ceil(exact)  # tiles along M and N, steps along K
    np.divide(exact, counts, out=out[8:11])
    grid, steps = counts[0] * counts[1], counts[2]
    shared = np.empty((2, len(c)), np.float32)
    each, tiles = shared  # a unit's tiles, and all
    np.multiply(grid, p.B, out=tiles)
    share = tiles / units
    np.ceil(share, out=each)
    together = np.minimum(c.resident, each)

    times = out[15:19]
    np.multiply(shared * steps, c.step_us, out=times[:2])
    _memory_us(p, c, counts, grid, bytes_a_us, out=times[2])
    np.multiply(np.ceil(each / together) * steps, c.latency_us, out=times[3])
    np.add(_soft_maximum(times), LAUNCH_US, out=out[19])
    out[15:20] += 0.1
    out[15:20] /= bounds(p, hardware).roofline_us
    np.log(out[15:20], out=out[15:20])
    piece_a, piece_b = _pieces(p)
    np.log2(c.loaded[0] / piece_a + c.loaded[1] / piece_b, out=out[20])

    np.log2(counts[:2], out=out[:2])
    np.log2(tiles, out=out[2])
    np.log2(steps, out=out[3])
    np.log2(each, out=out[4])
    np.divide(share, each, out=out[5])
    waves = tiles / c.at_once
    np.log2(waves, out=out[6])
    np.divide(waves, np.ceil(waves), out=out[7])
    out[11] = c.blocks[2] <= p.low[2]
    np.add(np.log2(together), c.log_kept_busy, out=out[12:14])
    np.minimum(steps / c.stages, 8, out=out[14])
    return out.T


def _memory_us(
    p: Problems, c: ConfigArrays, counts: Floats, grid: Floats, bytes_a_us: float, out: Floats
) -> None:
    """Traffic if each wave reads its tiles' operands once, `group_m` rows of tiles at a time."""
    wave = np.empty_like(counts[:2])
    rows, columns = wave
    np.minimum(c.group_m, counts[0], out=rows)
    np.minimum(np.ceil(c.at_once / rows), counts[1], out=columns)
    waves = np.maximum(grid / (rows * columns), 1)
    wave *= c.blocks[:2]
    np.multiply(waves, rows + columns, out=out)
    each = p.B / bytes_a_us
    out *= p.K * p.item * each
    out += p.M * p.N * p.out_item * each


def _soft_maximum(times: Floats) -> Floats:
    """Smooth maximum, a little above the largest; capped: fourth powers soon leave float32."""
    powers = np.minimum(times, _LONGEST_US)
    np.square(powers, out=powers)
    np.square(powers, out=powers)
    total = np.add.reduce(powers)
    np.sqrt(total, out=total)
    return np.asarray(np.sqrt(total, out=total))
