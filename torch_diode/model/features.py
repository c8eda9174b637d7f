"""The features: what a model sees of a problem, of a candidate, and of the two together.

There is one extractor, for training and for the compile alike. It works in four blocks, so that
each is computed no more often than it changes: what depends on the problem alone, what depends on
the candidates and the kind of problem (cached where a model is asked), what depends on both, and
what only the vendor library's model looks at. Everything is float32 and vectorised.

Change anything that changes a number here, and raise `FEATURES_VERSION`: a model trained on other
features is refused when it is loaded.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from torch_diode.candidates.resources import resources_of, uses_matrix_unit_on_shared
from torch_diode.model.problem_arrays import PRECISIONS, Floats, ProblemArrays
from torch_diode.types.candidates import Candidates
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import BIASES, DTYPE_BYTES, OPS, MMShape

FEATURES_VERSION = 1

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
_VENDOR_TILES = ((64, 64), (64, 128), (128, 64), (128, 128), (64, 256), (128, 256), (256, 128))
_VENDOR_BLOCK_BYTES = 128

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
VENDOR_NAMES = tuple(
    f"vendor_{m}x{n}_{what}"
    for m, n in _VENDOR_TILES
    for what in ("log_compute", "unit_use", "log2_tiles")
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


@dataclass(frozen=True, eq=False)
class ConfigArrays:
    """Candidates as the joint features need them; ones where a candidate has no config."""

    block_m: Floats
    block_n: Floats
    block_k: Floats
    stages: Floats
    warps: Floats
    group_m: Floats
    resident: Floats
    persistent: npt.NDArray[np.bool_]
    features: Floats
    """The block of `CONFIG_NAMES`; all zero where a candidate has no config."""

    def __len__(self) -> int:
        return len(self.block_m)


def roofline_us(problems: ProblemArrays, hardware: Hardware) -> Floats:
    """The least a problem can take: a launch, and its arithmetic or its traffic."""
    compute, memory = _bounds_us(problems, hardware)
    return np.asarray(np.maximum(compute, memory) + np.float32(LAUNCH_US))


def problem_features(problems: ProblemArrays, hardware: Hardware) -> Floats:
    """The block of `PROBLEM_NAMES`, one row a problem."""
    p = problems
    flops = 2 * p.B * p.M * p.N * p.K
    moved = _bytes_moved(p)
    compute, memory = _bounds_us(p, hardware)
    logs = np.log2(np.stack([p.B, p.M, p.N, p.K, flops, moved, flops / moved, p.B * p.M * p.N], 1))
    low = p.low_bits
    inner_a = np.where(p.transpose_a > 0, low[:, 0], low[:, 2]) * p.item
    inner_b = np.where(p.transpose_b > 0, low[:, 2], low[:, 1]) * p.item
    row_a = np.where(p.transpose_a > 0, p.M, p.K) * p.item
    row_b = np.where(p.transpose_b > 0, p.K, p.N) * p.item
    columns = [
        logs,
        np.log(roofline_us(p, hardware))[:, None],
        np.log(compute / memory)[:, None],
        p.op[:, None] == np.arange(len(OPS)),
        p.precision[:, None] == np.arange(len(PRECISIONS)),
        np.stack([p.transpose_a, p.transpose_b], axis=1),
        p.bias[:, None] == np.arange(1, len(BIASES)),
        (low[:, :, None] >= np.array(_DIVISORS)).reshape(len(p), -1),
        np.log2(np.minimum(low, 256)) / 8,
        np.stack([inner_a >= 16, inner_b >= 16, low[:, 1] * p.out_item >= 16], axis=1),
        np.log2(np.stack([row_a, row_b], axis=1)),
    ]
    return np.concatenate(columns, axis=1, dtype=np.float32)


def vendor_features(problems: ProblemArrays, hardware: Hardware) -> Floats:
    """The block of `VENDOR_NAMES`: how the tiles a library is built of would fall on the chip."""
    p = problems
    tiles = np.array(_VENDOR_TILES, np.float32)
    count = np.ceil(p.M[:, None] / tiles[:, 0]) * np.ceil(p.N[:, None] / tiles[:, 1])
    count *= p.B[:, None]
    each = np.ceil(count / max(hardware.units, 1))
    block_k = _VENDOR_BLOCK_BYTES / p.item[:, None]
    work = tiles[:, 0] * tiles[:, 1] * np.ceil(p.K[:, None] / block_k) * block_k
    compute = each * work * 2 / _unit_rate(p, hardware)[:, None]
    ratio = np.log((compute + LAUNCH_US) / roofline_us(p, hardware)[:, None])
    use = count / (each * max(hardware.units, 1))
    columns = np.stack([ratio, use, np.log2(count)], axis=2)
    return np.asarray(columns.reshape(len(p), -1), np.float32)


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
        block_m, block_n, block_k, stages, warps, group, resident, persistent, features
    )


def joint_features(problems: ProblemArrays, configs: ConfigArrays, hardware: Hardware) -> Floats:
    """The block of `JOINT_NAMES`: one row a config, of one problem or of as many problems."""
    p, c = problems, configs
    units = np.float32(max(hardware.units, 1))
    roof = roofline_us(p, hardware)
    tiles_m, tiles_n = np.ceil(p.M / c.block_m), np.ceil(p.N / c.block_n)
    steps = np.ceil(p.K / c.block_k)
    tiles = p.B * tiles_m * tiles_n
    each = np.ceil(tiles / units)
    together = np.minimum(c.resident, each)
    rounds = np.ceil(each / together)
    waves = tiles / (units * c.resident)
    loads = (c.block_m + c.block_n) * c.block_k * p.item
    bandwidth = np.float32(max(hardware.memory_gbps, 1) * 1e3)

    compute = each * steps * (c.block_m * c.block_n * c.block_k) * (2 / _unit_rate(p, hardware))
    from_l2 = tiles * steps * loads / (bandwidth * np.float32(_L2_OVER_MEMORY))
    memory = _memory_us(p, c, tiles_m, tiles_n, units * c.resident, bandwidth)
    latency = rounds * steps * np.float32(_LATENCY_US) / c.stages
    estimate = _soft_maximum(compute, from_l2, memory, latency) + np.float32(LAUNCH_US)

    out = np.empty((len(JOINT_NAMES), len(c)), np.float32)  # a feature's values side by side
    counts = (tiles_m, tiles_n, tiles, steps, each)
    for column, values in enumerate(counts):
        np.log2(values, out=out[column])
    out[5] = tiles / (units * each)
    np.log2(waves, out=out[6])
    out[7] = waves / np.ceil(waves)
    out[8] = p.M / (tiles_m * c.block_m)
    out[9] = p.N / (tiles_n * c.block_n)
    out[10] = p.K / (steps * c.block_k)
    out[11] = p.low_bits[:, 2] >= c.block_k
    np.log2(together * c.warps, out=out[12])
    np.log2(together * c.stages * loads, out=out[13])
    out[14] = np.minimum(steps / c.stages, 8)
    for column, values in enumerate((compute, from_l2, memory, latency, estimate), 15):
        np.log((values + np.float32(0.1)) / roof, out=out[column])
    return out.T


def _memory_us(
    p: ProblemArrays,
    c: ConfigArrays,
    tiles_m: Floats,
    tiles_n: Floats,
    at_once: Floats,
    bandwidth: np.float32,
) -> Floats:
    """Traffic if each wave reads what its tiles need once: `group_m` rows of tiles at a time."""
    rows = np.minimum(np.minimum(c.group_m, tiles_m), at_once)
    columns = np.minimum(np.ceil(at_once / rows), tiles_n)
    waves = np.maximum(tiles_m * tiles_n / (rows * columns), 1)
    read = waves * (rows * c.block_m + columns * c.block_n) * p.K * p.item
    return np.asarray(p.B * (read + p.M * p.N * p.out_item) / bandwidth)


def _soft_maximum(*times: Floats) -> Floats:
    """A little above the longest; capped, since the fourth power soon leaves float32."""
    total: Floats = np.zeros(1, np.float32)
    for time in times:
        total = total + np.square(np.square(np.minimum(time, np.float32(_LONGEST_US))))
    return np.asarray(np.sqrt(np.sqrt(total)))


def _bounds_us(p: ProblemArrays, hardware: Hardware) -> tuple[Floats, Floats]:
    units = np.float32(max(hardware.units, 1))
    compute = 2 * p.B * p.M * p.N * p.K / (_unit_rate(p, hardware) * units)
    memory = _bytes_moved(p) / np.float32(max(hardware.memory_gbps, 1) * 1e3)
    return compute, memory


def _bytes_moved(p: ProblemArrays) -> Floats:
    inputs = (p.M * p.K + p.K * p.N) * p.item
    bias = np.where(p.bias == 1, p.N, np.where(p.bias == 2, p.M * p.N, np.float32(0)))
    return np.asarray(p.B * (inputs + (p.M * p.N + bias) * p.out_item))


def _unit_rate(p: ProblemArrays, hardware: Hardware) -> Floats:
    """Operations a microsecond that one unit can do, in each problem's precision."""
    return np.asarray(_unit_rates(hardware)[p.precision])


@lru_cache(maxsize=16)
def _unit_rates(hardware: Hardware) -> Floats:
    rates = [hardware.peak_tflops(name) or 1.0 for name in (*PRECISIONS, "")]
    return np.asarray(np.array(rates, np.float32) * 1e6 / max(hardware.units, 1), np.float32)
