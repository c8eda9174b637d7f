"""The features: what a model sees of a problem, of a candidate, and of the two together.

There is one extractor, for training and for the compile alike. It works in three blocks, so that
each is computed no more often than it changes: what depends on the problem alone, what depends on
the candidates and the kind of problem (cached where a model is asked), and what depends on both;
`vendor_features` has what only the models of the vendor library look at. Everything is float32 and
vectorised; of one problem alone, what needs no array is computed in plain numbers, by the same
formulas.

Change anything that changes a number here, and raise `FEATURES_VERSION`: a model trained on other
features is refused when it is loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from torch_diode.candidates.gpu.resources import resources_of, uses_matrix_unit_on_shared
from torch_diode.model.features.problem_arrays import (
    PRECISIONS,
    Floats,
    Problems,
    Values,
    precision_of,
)
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import BIASES, DTYPE_BYTES, OPS, MMShape

FEATURES_VERSION = 3

TEMPLATES = ("triton::mm", "triton::bmm", "triton::mm_persistent_tma")
"""Templates a model can tell apart; it has seen no others and must not be asked about them."""

LAUNCH_US = 3.0
"""In the roofline, because no kernel is faster: without it the target of small problems would be
how small they are."""

_LATENCY_US = 0.5
_L2_OVER_MEMORY = 2.5
_RESERVED_SHARED = 1024
_LONGEST_US = 1e9
_MOST_RESIDENT = 16
_DIVISORS = (8, 16, 64, 128)
_LARGEST_LOW_BIT = 256
_ALIGNED_BYTES = 16

PROBLEM_NAMES = (
    *(f"log2_{size}" for size in ("B", "M", "N", "K", "flops", "bytes", "intensity", "outputs")),
    "log_roofline_us",
    "log_compute_over_memory",
    *(f"op_{op}" for op in OPS),
    *(f"precision_{name}" for name in PRECISIONS),
    "transpose_a",
    "transpose_b",
    *(f"bias_{bias}" for bias in BIASES[1:]),
    *(f"{size}_by_{divisor}" for size in "MNK" for divisor in _DIVISORS),
    *(f"log2_low_bit_{size}" for size in "MNK"),
    "aligned_a",
    "aligned_b",
    "aligned_c",
    "log2_piece_a",
    "log2_piece_b",
    "log2_piece_c",
    "log2_row_bytes_a",
    "log2_row_bytes_b",
)
CONFIG_NAMES = (
    *(f"template_{name.split('::')[1]}" for name in TEMPLATES),
    "log2_block_m",
    "log2_block_n",
    "log2_block_k",
    "num_stages",
    "log2_num_warps",
    "log2_group_m",
    "log2_split_k",
    "direct",
    "shared_share",
    "registers_share",
    "log2_resident",
    "log2_outputs_a_thread",
    "log2_load_bytes_a_thread",
)
JOINT_NAMES = (
    "log2_tiles_m",
    "log2_tiles_n",
    "log2_tiles",
    "log2_k_steps",
    "log2_tiles_a_unit",
    "unit_use",
    "log2_waves",
    "wave_use",
    "fill_m",
    "fill_n",
    "fill_k",
    "even_k",
    "log2_warps_a_unit",
    "log2_bytes_in_flight",
    "steps_a_stage",
    "log_compute",
    "log_l2",
    "log_memory",
    "log_latency",
    "log_estimate",
    "log2_loads_a_thread",
)
FEATURE_NAMES = (*PROBLEM_NAMES, *CONFIG_NAMES, *JOINT_NAMES)


class Chip(NamedTuple):
    """What the features need to know of a hardware."""

    units: float
    bytes_a_us: float
    """From and to its memory."""
    unit_rates: Floats
    """Operations a microsecond that one unit can do, by precision."""


class Bounds(NamedTuple):
    """What no kernel can be faster than, and what it follows from; one value a problem."""

    rate: Values
    """Operations a microsecond that one unit can do, in the problem's precision."""
    outputs: Values
    flops: Values
    moved: Values
    """Bytes, if each is read or written once."""
    compute_us: Values
    memory_us: Values
    roofline_us: Values


@dataclass(frozen=True, eq=False)
class ConfigArrays:
    """Candidates as the joint features need them; as if all blocks were one where a candidate has
    no config."""

    blocks: Floats
    """Rows for M, N and K."""
    step_us: Floats
    """What one step along K of one tile takes: rows for its unit's arithmetic and for the L2."""
    latency_us: Floats
    """The same for the wait between steps, shared among the stages."""
    stages: Floats
    group_m: Floats
    """Never more than run at once."""
    resident: Floats
    at_once: Floats
    """Tiles that the whole chip works on at a time."""
    log_kept_busy: Floats
    """log2 of what one resident tile brings: rows for its warps and for its bytes in flight."""
    loaded: Floats
    """Bytes a thread loads for a step along K: rows for A and for B."""
    features: Floats
    """The block of `CONFIG_NAMES`; all zero where a candidate has no config."""

    def __len__(self) -> int:
        return len(self.stages)


def roofline_us(problems: Problems, hardware: Hardware) -> Values:
    """The least a problem can take: a launch, and its arithmetic or its traffic."""
    return bounds(problems, hardware).roofline_us


def bounds(problems: Problems, hardware: Hardware) -> Bounds:
    """The problems' limits on this hardware, worked out once."""
    found: Bounds | None = problems.known.get(hardware)
    if found is None:
        found = problems.known[hardware] = _bounds(problems, hardware)
    return found


def _bounds(p: Problems, hardware: Hardware) -> Bounds:
    units, bytes_a_us, rates = chip(hardware)
    rate = p.xp.take(rates, p.precision)
    outputs = p.B * p.M * p.N
    flops = 2 * outputs * p.K
    moved = _bytes_moved(p)
    compute, memory = flops / (rate * units), moved / bytes_a_us
    roofline = p.xp.maximum(compute, memory) + LAUNCH_US
    return Bounds(rate, outputs, flops, moved, compute, memory, roofline)


def problem_features(problems: Problems, hardware: Hardware) -> Floats:
    """The block of `PROBLEM_NAMES`, one row a problem."""
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
        *(size >= divisor for size in low for divisor in _DIVISORS),
        *(xp.log2(xp.minimum(size, _LARGEST_LOW_BIT)) / 8 for size in low),
        *(piece == _ALIGNED_BYTES for piece in pieces),
        *(xp.log2(piece) / 4 for piece in pieces),
        xp.log2(either(p.transpose_a, p.M, p.K) * p.item),
        xp.log2(either(p.transpose_b, p.K, p.N) * p.item),
    ]
    return by_problem(columns)


def _pieces(p: Problems) -> tuple[Values, Values]:
    """Bytes of A and of B that one load can take, 16 at most: their rows start so far apart."""
    low_m, low_n, low_k = p.low
    return (
        p.xp.minimum(either(p.transpose_a, low_m, low_k) * p.item, _ALIGNED_BYTES),
        p.xp.minimum(either(p.transpose_b, low_k, low_n) * p.item, _ALIGNED_BYTES),
    )


def by_problem(rows: Sequence[Values]) -> Floats:
    """Rows with one value a problem, or numbers of one problem, turned round."""
    return np.ascontiguousarray(np.array(rows, np.float32).reshape(len(rows), -1).T)


def either(turned: Values, then: Values, otherwise: Values) -> Values:
    """`then` where `turned` is 1, `otherwise` where it is 0."""
    return turned * then + (1 - turned) * otherwise


def config_arrays(candidates: Candidates, kind: MMShape, hardware: Hardware) -> ConfigArrays:
    """What depends on the candidates and the kind of problem: dtypes and layout, not sizes."""
    f = candidates.fields
    block_m, block_n, block_k, warps, group = (
        np.maximum(f[name], 1).astype(np.float32)
        for name in ("block_m", "block_n", "block_k", "num_warps", "group_m")
    )
    needs = resources_of(candidates, kind, hardware)
    threads = warps * (hardware.warp_size or 32)
    resident = np.full(len(candidates), _MOST_RESIDENT, np.float32)
    for limit, used in (
        (hardware.shared_memory_per_unit, needs.shared_bytes + _RESERVED_SHARED),
        (hardware.registers_per_unit, needs.registers * threads),
        (hardware.threads_per_unit, threads),
    ):
        if limit:
            np.minimum(resident, limit // np.maximum(used, 1), out=resident)
    persistent = candidates.is_template(TEMPLATES[2])
    resident = np.where(persistent, 1, np.maximum(resident, 1)).astype(np.float32)
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
    units, bytes_a_us, rates = chip(hardware)
    step_us = block_m * block_n * block_k * (2 / rates[precision_of(kind)])
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
    """The block of `JOINT_NAMES`: one row a config, of one problem or of as many problems.

    `out`, where given, is filled and returned turned round: a row for each feature. Features are
    computed several at a time, since numpy takes longer to start on an array than to go over it.
    """
    p, c = problems, configs
    units, bytes_a_us, _ = chip(hardware)
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
    """Traffic if each wave reads what its tiles need once: `group_m` rows of tiles at a time."""
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
    """A little above the longest; capped, since the fourth power soon leaves float32."""
    powers = np.minimum(times, _LONGEST_US)
    np.square(powers, out=powers)
    np.square(powers, out=powers)
    total = np.add.reduce(powers)
    np.sqrt(total, out=total)
    return np.asarray(np.sqrt(total, out=total))


def _bytes_moved(p: Problems) -> Values:
    inputs = (p.M * p.K + p.K * p.N) * p.item
    bias = (p.bias == 1) * p.N + (p.bias == 2) * (p.M * p.N)
    return p.B * (inputs + (p.M * p.N + bias) * p.out_item)


@lru_cache(maxsize=16)
def chip(hardware: Hardware) -> Chip:
    """The hardware's rates, 1 for what is not known."""
    units = max(hardware.units, 1)
    rates = [hardware.peak_tflops(name) or 1.0 for name in (*PRECISIONS, "")]
    return Chip(
        units=float(units),
        bytes_a_us=max(hardware.memory_gbps, 1) * 1e3,
        unit_rates=np.asarray(np.array(rates, np.float32) * 1e6 / units, np.float32),
    )
