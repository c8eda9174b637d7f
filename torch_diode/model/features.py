"""The features: what a model sees of a problem, of a candidate, and of the two together.

There is one extractor, for training and for the compile alike. It works in three blocks, so that
each is computed no more often than it changes: what depends on the problem alone, what depends on
the candidates and the kind of problem (cached where a model is asked), and what depends on both;
`vendor_features` has what only the models of the vendor library look at. Everything is float32 and
vectorised.

Change anything that changes a number here, and raise `FEATURES_VERSION`: a model trained on other
features is refused when it is loaded.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from torch_diode.candidates.resources import resources_of, uses_matrix_unit_on_shared
from torch_diode.model.problem_arrays import PRECISIONS, Floats, ProblemArrays
from torch_diode.types.candidates import Candidates
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import BIASES, DTYPE_BYTES, OPS, MMShape

FEATURES_VERSION = 2

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
_OP_NUMBERS = np.arange(len(OPS))[:, None]
_PRECISION_NUMBERS = np.arange(len(PRECISIONS))[:, None]
_BIAS_NUMBERS = np.arange(1, len(BIASES))[:, None]
_DIVISOR_COLUMN = np.array(_DIVISORS)[:, None]

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
)
FEATURE_NAMES = (*PROBLEM_NAMES, *CONFIG_NAMES, *JOINT_NAMES)


class Bounds(NamedTuple):
    """What no kernel can be faster than, and what it follows from; one value a problem."""

    rate: Floats
    """Operations a microsecond that one unit can do, in the problem's precision."""
    outputs: Floats
    flops: Floats
    moved: Floats
    """Bytes, if each is read or written once."""
    compute_us: Floats
    memory_us: Floats
    roofline_us: Floats


@dataclass(frozen=True, eq=False)
class ConfigArrays:
    """Candidates as the joint features need them; ones where a candidate has no config."""

    blocks: Floats
    """Rows for M, N and K."""
    volume: Floats
    """The product of the three."""
    loaded: Floats
    """Elements of A and B that one step along K reads."""
    stages: Floats
    warps: Floats
    group_m: Floats
    resident: Floats
    persistent: npt.NDArray[np.bool_]
    features: Floats
    """The block of `CONFIG_NAMES`; all zero where a candidate has no config."""

    def __len__(self) -> int:
        return len(self.volume)


def roofline_us(problems: ProblemArrays, hardware: Hardware) -> Floats:
    """The least a problem can take: a launch, and its arithmetic or its traffic."""
    return bounds(problems, hardware).roofline_us


def bounds(problems: ProblemArrays, hardware: Hardware) -> Bounds:
    """The problems' limits on this hardware, worked out once for each `ProblemArrays`."""
    found: Bounds | None = problems.known.get(hardware)
    if found is None:
        found = problems.known[hardware] = _bounds(problems, hardware)
    return found


def _bounds(p: ProblemArrays, hardware: Hardware) -> Bounds:
    rate = np.asarray(_unit_rates(hardware)[p.precision])
    outputs = p.B * p.M * p.N
    flops = 2 * outputs * p.K
    moved = _bytes_moved(p)
    compute = flops / (rate * np.float32(max(hardware.units, 1)))
    memory = moved / np.float32(max(hardware.memory_gbps, 1) * 1e3)
    roofline = np.asarray(np.maximum(compute, memory) + np.float32(LAUNCH_US))
    return Bounds(rate, outputs, flops, moved, compute, memory, roofline)


def problem_features(problems: ProblemArrays, hardware: Hardware) -> Floats:
    """The block of `PROBLEM_NAMES`, one row a problem."""
    p = problems
    b = bounds(p, hardware)
    low = p.low_bits.T
    a_turned, b_turned = p.transpose_a > 0, p.transpose_b > 0
    out = np.empty((len(PROBLEM_NAMES), len(p)), np.float32)  # a feature's values side by side
    out[:4] = p.sizes
    out[4], out[5], out[6] = b.flops, b.moved, b.flops / b.moved
    out[7] = b.outputs
    np.log2(out[:8], out=out[:8])
    out[8], out[9] = b.roofline_us, b.compute_us / b.memory_us
    np.log(out[8:10], out=out[8:10])
    out[10:14] = p.op == _OP_NUMBERS
    out[14:18] = p.precision == _PRECISION_NUMBERS
    out[18], out[19] = p.transpose_a, p.transpose_b
    out[20:22] = p.bias == _BIAS_NUMBERS
    out[22:34].reshape(3, 4, -1)[:] = low[:, None] >= _DIVISOR_COLUMN
    out[34:37] = np.log2(np.minimum(low, 256)) / 8
    out[37] = np.where(a_turned, low[0], low[2]) * p.item >= 16
    out[38] = np.where(b_turned, low[2], low[1]) * p.item >= 16
    out[39] = low[1] * p.out_item >= 16
    out[40] = np.where(a_turned, p.M, p.K) * p.item
    out[41] = np.where(b_turned, p.K, p.N) * p.item
    np.log2(out[40:], out=out[40:])
    return np.ascontiguousarray(out.T)


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
    loaded = (block_m + block_n) * block_k * DTYPE_BYTES[kind.dtype]
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
    return ConfigArrays(
        blocks=np.stack([block_m, block_n, block_k]),
        volume=block_m * block_n * block_k,
        loaded=(block_m + block_n) * block_k,
        stages=stages,
        warps=warps,
        group_m=group,
        resident=resident,
        persistent=persistent,
        features=features,
    )


def joint_features(
    problems: ProblemArrays, configs: ConfigArrays, hardware: Hardware, out: Floats | None = None
) -> Floats:
    """The block of `JOINT_NAMES`: one row a config, of one problem or of as many problems.

    `out`, where given, is filled and returned turned round: a row for each feature. Features are
    computed several at a time, since numpy takes longer to start on an array than to go over it.
    """
    p, c = problems, configs
    b = bounds(p, hardware)
    units = np.float32(max(hardware.units, 1))
    bandwidth = np.float32(max(hardware.memory_gbps, 1) * 1e3)
    if out is None:
        out = np.empty((len(JOINT_NAMES), len(c)), np.float32)
    sizes = p.sizes[1:]
    counts = np.ceil(sizes / c.blocks)  # tiles along M and N, steps along K
    np.divide(sizes, counts * c.blocks, out=out[8:11])
    steps = counts[2]
    tiles = p.B * counts[0] * counts[1]
    each = np.ceil(tiles / units)
    together = np.minimum(c.resident, each)
    at_once = units * c.resident
    loads = c.loaded * p.item

    times = out[15:19]
    np.multiply(each * steps * c.volume, 2 / b.rate, out=times[0])
    np.divide(tiles * steps * loads, bandwidth * np.float32(_L2_OVER_MEMORY), out=times[1])
    times[2] = _memory_us(p, c, counts, at_once, bandwidth)
    rounds = np.ceil(each / together)
    np.divide(rounds * steps * np.float32(_LATENCY_US), c.stages, out=times[3])
    np.add(_soft_maximum(times), np.float32(LAUNCH_US), out=out[19])
    out[15:] += np.float32(0.1)
    out[15:] /= b.roofline_us
    np.log(out[15:], out=out[15:])

    out[:2], out[2], out[3], out[4] = counts[:2], tiles, steps, each
    np.log2(out[:5], out=out[:5])
    np.divide(tiles, units * each, out=out[5])
    waves = tiles / at_once
    np.log2(waves, out=out[6])
    np.divide(waves, np.ceil(waves), out=out[7])
    out[11] = p.low_bits[:, 2].astype(np.float32) >= c.blocks[2]
    np.multiply(together, c.warps, out=out[12])
    np.multiply(together * c.stages, loads, out=out[13])
    np.log2(out[12:14], out=out[12:14])
    np.minimum(steps / c.stages, np.float32(8), out=out[14])
    return out.T


def _memory_us(
    p: ProblemArrays, c: ConfigArrays, counts: Floats, at_once: Floats, bandwidth: np.float32
) -> Floats:
    """Traffic if each wave reads what its tiles need once: `group_m` rows of tiles at a time."""
    tiles_m, tiles_n, _ = counts
    rows = np.minimum(np.minimum(c.group_m, tiles_m), at_once)
    columns = np.minimum(np.ceil(at_once / rows), tiles_n)
    waves = np.maximum(tiles_m * tiles_n / (rows * columns), np.float32(1))
    read = waves * (rows * c.blocks[0] + columns * c.blocks[1]) * p.K * p.item
    return np.asarray(p.B * (read + p.M * p.N * p.out_item) / bandwidth)


def _soft_maximum(times: Floats) -> Floats:
    """A little above the longest; capped, since the fourth power soon leaves float32."""
    powers = np.minimum(times, np.float32(_LONGEST_US))
    np.square(powers, out=powers)
    np.square(powers, out=powers)
    total = powers[0]
    for power in powers[1:]:
        total += power
    np.sqrt(total, out=total)
    return np.asarray(np.sqrt(total, out=total))


def _bytes_moved(p: ProblemArrays) -> Floats:
    inputs = (p.M * p.K + p.K * p.N) * p.item
    bias = np.where(p.bias == 1, p.N, np.where(p.bias == 2, p.M * p.N, np.float32(0)))
    return np.asarray(p.B * (inputs + (p.M * p.N + bias) * p.out_item))


@lru_cache(maxsize=16)
def _unit_rates(hardware: Hardware) -> Floats:
    rates = [hardware.peak_tflops(name) or 1.0 for name in (*PRECISIONS, "")]
    return np.asarray(np.array(rates, np.float32) * 1e6 / max(hardware.units, 1), np.float32)
