"""Roofline of a problem on a hardware: a launch, and its arithmetic or its memory traffic."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from torch_diode.hardware.catalog import known, known_names
from torch_diode.model.features.names import PRECISIONS

if TYPE_CHECKING:
    from torch_diode.model.features.problem_arrays import Floats, Problems, Values
    from torch_diode.types.hardware import Hardware

LAUNCH_US = 3.0
"""Part of the roofline: no kernel is faster, and the target of small problems would otherwise be
their size."""

CALL_US = 1.0
"""The same on a CPU, where a call costs less."""
_FLOPS_A_LANE = 4
"""Two fused multiply-adds per cycle."""
_CLOCK_MHZ = 3000
_L1_BYTES, _L2_BYTES, _L3_BYTES = 32 << 10, 1 << 20, 32 << 20
_BYTES_A_US = (100e3, 60e3, 30e3, 15e3)
"""Typical bandwidth of one core from its three caches and from memory."""


class ChipRates(NamedTuple):
    """Rates of a hardware, 1 where unknown."""

    units: float
    bytes_a_us: float
    """Memory bandwidth."""
    unit_rates: Floats
    """Operations per microsecond of one unit, by precision."""


class Bounds(NamedTuple):
    """Lower bounds on the time of problems, and their terms; one value per problem."""

    rate: Values
    """Operations per microsecond of one unit, in the problem's precision."""
    outputs: Values
    flops: Values
    moved: Values
    """Bytes read and written, each once."""
    compute_us: Values
    memory_us: Values
    roofline_us: Values


def roofline_us(problems: Problems, hardware: Hardware) -> Values:
    """Least time of a problem: a launch, and its arithmetic or its traffic."""
    return bounds(problems, hardware).roofline_us


def bounds(problems: Problems, hardware: Hardware) -> Bounds:
    """Bounds of the problems on this hardware, computed once."""
    result: Bounds | None = problems.known.get(hardware)
    if result is None:
        of = cpu_bounds if hardware.kind == "cpu" else _bounds
        result = problems.known[hardware] = of(problems, hardware)
    return result


def cpu_bounds(p: Problems, hardware: Hardware) -> Bounds:
    """Bounds on a CPU: its threads' arithmetic, or the traffic to the cache or the memory that all
    operands fit into."""
    rates, levels = core_rates(hardware)
    rate = p.xp.take(rates, p.precision)
    threads = p.xp.maximum(p.threads, 1.0)
    outputs = p.B * p.M * p.N
    flops = 2 * outputs * p.K
    moved = _bytes_moved(p)
    compute = flops / (rate * threads)
    memory = 0.0
    below = 0.0
    for capacity, bytes_a_us in levels:
        # What lies beyond the smaller levels streams from this one.
        memory = memory + p.xp.maximum(p.xp.minimum(moved, capacity) - below, 0.0) / bytes_a_us
        below = capacity
    memory = memory / threads
    return Bounds(rate, outputs, flops, moved, compute, memory, compute + memory + CALL_US)


class CoreRates(NamedTuple):
    """Rates of one core of a CPU, assumed where they are not known."""

    rates: Floats
    """Operations per microsecond, by precision."""
    levels: tuple[tuple[float, float], ...]
    """Capacity in bytes of each level, and the bytes per microsecond a core reads from it."""


@lru_cache(maxsize=16)
def core_rates(hardware: Hardware) -> CoreRates:
    """Rates of one core: the catalog's, or those that its vector width and clock allow.

    Of a CPU in the catalog its properties are the catalog's too, for a model to see the same
    wherever it is asked.
    """
    hardware = known(hardware.name) if hardware.name in known_names() else hardware
    sets = hardware.instruction_sets
    bytes_wide = 64 if "avx512f" in sets else 32 if "avx2" in sets else 16
    float32 = bytes_wide / 4 * _FLOPS_A_LANE * (hardware.clock_mhz or _CLOCK_MHZ)
    rates = [hardware.peak_tflops(name) * 1e6 or float32 for name in (*PRECISIONS, "")]
    l1, l2, l3 = (
        hardware.l1_bytes or _L1_BYTES,
        hardware.l2_bytes or _L2_BYTES,
        hardware.l3_bytes or _L3_BYTES,
    )
    sizes = (float(l1), float(l2), float(l3), float("inf"))
    return CoreRates(np.array(rates, np.float32), tuple(zip(sizes, _BYTES_A_US, strict=True)))


def _bounds(p: Problems, hardware: Hardware) -> Bounds:
    units, bytes_a_us, rates = chip_rates(hardware)
    rate = p.xp.take(rates, p.precision)
    outputs = p.B * p.M * p.N
    flops = 2 * outputs * p.K
    moved = _bytes_moved(p)
    compute, memory = flops / (rate * units), moved / bytes_a_us
    roofline = p.xp.maximum(compute, memory) + LAUNCH_US
    return Bounds(rate, outputs, flops, moved, compute, memory, roofline)


def _bytes_moved(p: Problems) -> Values:
    inputs = (p.M * p.K + p.K * p.N) * p.item
    bias = (p.bias == 1) * p.N + (p.bias == 2) * (p.M * p.N)
    return p.B * (inputs + (p.M * p.N + bias) * p.out_item)


@lru_cache(maxsize=16)
def chip_rates(hardware: Hardware) -> ChipRates:
    """Rates of a hardware."""
    units = max(hardware.units, 1)
    rates = [hardware.peak_tflops(name) or 1.0 for name in (*PRECISIONS, "")]
    return ChipRates(
        units=float(units),
        bytes_a_us=max(hardware.memory_gbps, 1) * 1e3,
        unit_rates=np.asarray(np.array(rates, np.float32) * 1e6 / units, np.float32),
    )
