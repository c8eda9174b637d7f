"""How long a matmul kernel takes, from its tiles and the chip's properties alone.

A roofline with the two things that bend it for matrix multiplication: a kernel ends when its
busiest unit does (tile and wave quantisation), and a tile has to be fed (shared memory's
bandwidth, and the latency of loads that too few stages do not hide). Nothing is fitted to timings;
the few constants are what data sheets and public microbenchmarks say, rounded.
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
    """Every number in the model that is not the chip's or the problem's."""

    launch_us: float = 2.0
    """From one event to the next around a kernel that does nothing."""
    tile_us: float = 0.9
    """Filling the pipeline and writing the output, once for each round of tiles on a unit."""
    persistent_fill: float = 0.3
    """The part of it that a persistent kernel pays for each round after the first."""
    step_us: float = 0.01
    """Waiting for one another, once for each step along K."""
    load_latency_us: float = 0.7
    """From asking for a block to having it in shared memory."""
    memory_efficiency: float = 0.85
    """The part of the published bandwidth that a kernel sees."""
    unit_bandwidth_share: float = 2.5
    """How many times its even share of the bandwidth one unit can draw."""
    l2_over_memory: float = 2.2
    """Bandwidth of the L2 cache, over the memory's."""
    matrix_efficiency: float = 0.75
    """The part of the peak rate that generated code reaches with large tiles."""
    fragment_efficiency: float = 0.62
    """The same where operands pass through registers on chips whose matrix unit does without."""
    shared_bytes_a_clock: float = 128.0
    """Shared memory's bandwidth, a unit."""
    vendor_gain: float = 1.15
    """How much faster a hand-built kernel of the same tile is, once it runs."""
    vendor_launch_us: float = 0.8
    """How much longer the library's kernel takes to start and end."""
    descriptor_us: float = 2.0
    """What a kernel with TMA spends on making its descriptors before its first load."""
    unaligned_vendor: float = 1.5
    """Slowdown of the library where rows do not start on 16-byte boundaries."""


@dataclass(frozen=True, eq=False)
class Tiles:
    """What the model needs to know of some kernels, one array a field, all floats."""

    block_m: Floats
    block_n: Floats
    block_k: Floats
    num_warps: Floats
    buffers: Floats
    """Blocks of each operand in flight, the one being worked on included."""
    resident: Floats
    """Blocks a unit can hold."""
    direct: Flags
    """The matrix unit reads shared memory itself."""
    persistent: Flags
    """One block a unit, which walks over tiles and loads the next while it stores the last."""


def tile_times_us(
    problem: MMShape,
    tiles: Tiles,
    hardware: Hardware,
    constants: Constants,
    parts: Floats | float = 1.0,
    gain: float = 1.0,
) -> Floats:
    """Microseconds for each of the kernels. `parts` splits K, each part a problem of its own;
    `gain` makes everything but the launch so many times faster."""
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
    """A little above the longest: what takes nearly as long is never hidden completely."""
    total = np.square(np.square(times[0]))
    for time in times[1:]:
        total = total + np.square(np.square(time))
    return np.asarray(np.sqrt(np.sqrt(total)))


def _bytes_moved(problem: MMShape, parts: Floats | float) -> Floats | float:
    written = problem.B * problem.M * problem.N * DTYPE_BYTES[problem.out_dtype]
    return problem.bytes_moved + (parts - 1.0) * written


def _bandwidth(active: Floats, hardware: Hardware, constants: Constants) -> Floats:
    """Bytes a microsecond that so many units can draw from memory together."""
    whole = hardware.memory_gbps * 1e3 * constants.memory_efficiency
    share = active * (constants.unit_bandwidth_share / hardware.units)
    return np.asarray(whole * np.minimum(1.0, share))


def _step_us(problem: MMShape, tiles: Tiles, hardware: Hardware, constants: Constants) -> Floats:
    """One step along K of one tile with the unit to itself: arithmetic, or shared memory."""
    rate = peak_tflops(problem, hardware) * 1e6 / hardware.units * constants.matrix_efficiency
    slower = constants.fragment_efficiency if tiles.direct.any() else 1.0
    arithmetic = tiles.block_m * tiles.block_n * np.where(tiles.direct, 2 / rate, 2 / rate / slower)

    # Through registers, a square of warps reads each operand once for each row or column of it.
    across = np.where(tiles.direct, 1.0, np.sqrt(tiles.num_warps))
    down = np.where(tiles.direct, np.maximum(tiles.block_m / _DIRECT_ROWS, 1.0), across)
    passed = tiles.block_m * (across + 1.0) + tiles.block_n * (down + 1.0)
    clock = hardware.clock_mhz or _ASSUMED_CLOCK_MHZ
    passed *= DTYPE_BYTES[problem.dtype] / (constants.shared_bytes_a_clock * clock)
    return np.asarray(np.maximum(arithmetic, passed) * tiles.block_k)


def peak_tflops(problem: MMShape, hardware: Hardware) -> float:
    """The chip's published rate in this problem's precision; 0 where it is not known."""
    return hardware.peak_tflops(problem.precision)
