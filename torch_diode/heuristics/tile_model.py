"""Analytical time of a matmul kernel, from its tiles and the chip's properties.

A roofline with two corrections: a kernel ends when its busiest unit does (tile and wave
quantisation), and a tile has to be loaded (bandwidth of shared memory, and latency of loads that
too few stages do not hide). Nothing is fitted to timings; the constants are from data sheets and
public microbenchmarks, rounded.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import DTYPE_BYTES, MMShape

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

_ASSUMED_CLOCK_MHZ = 1500
_DIRECT_ROWS = 64


@dataclass(frozen=True)
class Constants:
    """The model's constants, other than the chip's and the problem's properties."""

    launch_us: float = 2.0
    """Time between events around an empty kernel."""
    tile_us: float = 0.9
    """Time to fill the pipeline and write the output, per round of tiles on a unit."""
    persistent_fill: float = 0.3
    """Fraction of `tile_us` that a persistent kernel takes per round after the first."""
    step_us: float = 0.01
    """Synchronization per step along K."""
    load_latency_us: float = 0.7
    """Latency of loading a block into shared memory."""
    memory_efficiency: float = 0.85
    """Fraction of the published bandwidth that kernels reach."""
    unit_bandwidth_share: float = 2.5
    """Greatest bandwidth of one unit, over its even share."""
    l2_over_memory: float = 2.2
    """Bandwidth of the L2 cache, over the memory's."""
    matrix_efficiency: float = 0.75
    """Fraction of the peak rate that generated code reaches with large tiles."""
    fragment_efficiency: float = 0.62
    """The same for operands in registers, on chips whose matrix unit reads shared memory."""
    shared_bytes_a_clock: float = 128.0
    """Bandwidth of shared memory per unit."""
    vendor_gain: float = 1.15
    """Speedup of a library's kernel of the same tile, without the launch."""
    vendor_launch_us: float = 0.8
    """Additional launch time of the library's kernel."""
    descriptor_us: float = 2.0
    """Time of a TMA kernel to create its descriptors before its first load."""
    unaligned_vendor: float = 1.5
    """Slowdown of the library where rows do not start on 16-byte boundaries."""


@dataclass(frozen=True, eq=False)
class Tiles:
    """Properties of kernels, one array per field."""

    block_m: Floats
    block_n: Floats
    block_k: Floats
    num_warps: Floats
    buffers: Floats
    """Blocks of each operand in flight, including the current one."""
    resident: Floats
    """Blocks that fit a unit."""
    direct: Flags
    """True if the matrix unit reads shared memory directly."""
    persistent: Flags
    """True for one block per unit, which loads the next tile while it stores the last."""


def tile_times_us(
    problem: MMShape,
    tiles: Tiles,
    hardware: Hardware,
    constants: Constants,
    parts: Floats | float = 1.0,
    gain: float = 1.0,
) -> Floats:
    """Microseconds of each kernel. `parts` splits K into separate problems; `gain` is a speedup of
    everything but the launch."""
    count = problem.B * parts * np.ceil(problem.M / tiles.block_m)
    count = count * np.ceil(problem.N / tiles.block_n)
    steps = np.ceil(np.ceil(problem.K / parts) / tiles.block_k)
    each = np.ceil(count / hardware.units)  # on the busiest unit
    together = np.where(tiles.persistent, 1.0, np.minimum(tiles.resident, each))
    rounds = np.ceil(each / together)

    step = _step_us(problem, tiles, hardware, constants)
    waits = constants.load_latency_us / np.maximum(tiles.buffers - 1.0, 1.0)
    waits += np.where(tiles.buffers > 1.0, 0.0, step)
    bandwidth = _bandwidth(np.minimum(count, hardware.units), hardware, constants)
    block_bytes = (tiles.block_m + tiles.block_n) * tiles.block_k * DTYPE_BYTES[problem.dtype]
    longest = _soft_maximum(
        each * steps * (step + constants.step_us),
        rounds * steps * waits,
        count * steps * block_bytes / (bandwidth * constants.l2_over_memory),
        _bytes_moved(problem, parts) / bandwidth,
    )
    later = np.where(tiles.persistent, constants.persistent_fill, 1.0)
    fill = constants.tile_us * (1.0 + later * (rounds - 1.0))
    return np.asarray(constants.launch_us + (fill + longest) / gain)


def _soft_maximum(*times: Floats) -> Floats:
    """Slightly above the maximum: nearly equal times do not overlap completely."""
    total = np.square(np.square(times[0]))
    for time in times[1:]:
        total = total + np.square(np.square(time))
    return np.asarray(np.sqrt(np.sqrt(total)))


def _bytes_moved(problem: MMShape, parts: Floats | float) -> Floats | float:
    written = problem.B * problem.M * problem.N * DTYPE_BYTES[problem.out_dtype]
    return problem.bytes_moved + (parts - 1.0) * written


def _bandwidth(active: Floats, hardware: Hardware, constants: Constants) -> Floats:
    """Bytes per microsecond that this many units can load from memory."""
    whole = hardware.memory_gbps * 1e3 * constants.memory_efficiency
    share = active * (constants.unit_bandwidth_share / hardware.units)
    return np.asarray(whole * np.minimum(1.0, share))


def _step_us(problem: MMShape, tiles: Tiles, hardware: Hardware, constants: Constants) -> Floats:
    """Time of one step along K of one tile alone on a unit: arithmetic or shared memory."""
    rate = peak_tflops(problem, hardware) * 1e6 / hardware.units * constants.matrix_efficiency
    slower = constants.fragment_efficiency if tiles.direct.any() else 1.0
    arithmetic = tiles.block_m * tiles.block_n * np.where(tiles.direct, 2 / rate, 2 / rate / slower)

    # Through registers, a square of warps reads each operand once per row or column of warps.
    across = np.where(tiles.direct, 1.0, np.sqrt(tiles.num_warps))
    down = np.where(tiles.direct, np.maximum(tiles.block_m / _DIRECT_ROWS, 1.0), across)
    passed = tiles.block_m * (across + 1.0) + tiles.block_n * (down + 1.0)
    clock = hardware.clock_mhz or _ASSUMED_CLOCK_MHZ
    passed *= DTYPE_BYTES[problem.dtype] / (constants.shared_bytes_a_clock * clock)
    return np.asarray(np.maximum(arithmetic, passed) * tiles.block_k)


def peak_tflops(problem: MMShape, hardware: Hardware) -> float:
    """The chip's published rate in this problem's precision; 0 where it is unknown."""
    return hardware.peak_tflops(problem.precision)
