"""What follows from being unsure: the regret to expect of benchmarking a few, and the chance that
one candidate is slower than another.

A candidate's log time is taken for normal around its prediction, with the model's error estimate as
its deviation, independently of the others: what all predictions of a problem have in common moves
no choice, and the estimates are of what is left. No random numbers: the same in every process.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Reals = npt.NDArray[np.float64]

_POINTS = 64
_REACH = 4.0
_LEAST_SIGMA = 1e-4


def normal_cdf(z: Reals) -> Reals:
    """The standard normal distribution, to four digits, in arrays and without scipy."""
    z = np.minimum(np.maximum(z, -6.0), 6.0)
    return np.asarray(1 / (1 + np.exp(-1.5976 * z - 0.07056 * z * z * z)))


def expected_regrets(log_times: Reals, sigma: Reals) -> Reals:
    """For k = 1, 2, …: how much longer, in log time, the best of the first k candidates is
    expected to take than the best of all; by integrating how likely each minimum is to lie above
    every point of a line."""
    sigma = np.maximum(sigma, _LEAST_SIGMA)
    low = float((log_times - _REACH * sigma).min())
    high = float(log_times[0] + _REACH * sigma[0])
    points = np.linspace(low, max(high, low + _LEAST_SIGMA), _POINTS)
    above = normal_cdf((log_times[:, None] - points) / sigma[:, None])
    all_above = np.cumprod(above, axis=0)
    step = points[1] - points[0]
    return np.asarray((all_above - all_above[-1]).sum(axis=1) * step)


def probability_slower(log_gain: float, sigma: float, other_sigma: float) -> float:
    """How likely a candidate predicted to be `log_gain` faster than another is in truth slower."""
    doubt = max(math.hypot(sigma, other_sigma), _LEAST_SIGMA)
    return float(normal_cdf(np.array(-log_gain / doubt)))
