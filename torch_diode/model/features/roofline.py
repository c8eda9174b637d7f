"""Roofline of a problem on a hardware: a launch, and its arithmetic or its memory traffic."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from torch_diode.model.features.names import PRECISIONS

if TYPE_CHECKING:
    from torch_diode.model.features.problem_arrays import Floats, Problems, Values
    from torch_diode.types.hardware import Hardware

LAUNCH_US = 3.0
"""Part of the roofline: no kernel is faster, and the target of small problems would otherwise be
their size."""


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
        result = problems.known[hardware] = _bounds(problems, hardware)
    return result


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
