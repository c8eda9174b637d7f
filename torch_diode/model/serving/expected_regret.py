"""Expected regret of benchmarking a few candidates, and the probability that one is slower.

A candidate's log time is modelled as normal around its prediction, with the model's error estimate
as deviation, independently of the others: an error that all predictions of a problem share changes
no choice, and the estimates exclude it. No random numbers: the same in every process.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Reals = npt.NDArray[np.float64]

_POINTS = 64
_DEVIATIONS = 4.0
_MIN_SIGMA = 1e-4


def normal_cdf(z: Reals) -> Reals:
    """Standard normal distribution function, to four digits."""
    z = np.minimum(np.maximum(z, -6.0), 6.0)
    return np.asarray(1 / (1 + np.exp(-1.5976 * z - 0.07056 * z * z * z)))


def expected_regrets(log_times: Reals, sigma: Reals) -> Reals:
    """Expected log regret of the best of the first k candidates, for k = 1, 2, …; integrates the
    probability that each minimum lies above a point."""
    sigma = np.maximum(sigma, _MIN_SIGMA)
    low = float((log_times - _DEVIATIONS * sigma).min())
    high = float(log_times[0] + _DEVIATIONS * sigma[0])
    points = np.linspace(low, max(high, low + _MIN_SIGMA), _POINTS)
    above = normal_cdf((log_times[:, None] - points) / sigma[:, None])
    all_above = np.cumprod(above, axis=0)
    step = points[1] - points[0]
    return np.asarray((all_above - all_above[-1]).sum(axis=1) * step)


def probability_slower(log_gain: float, sigma: float, other_sigma: float) -> float:
    """Probability that a candidate predicted to be `log_gain` faster than another is slower."""
    deviation = max(math.hypot(sigma, other_sigma), _MIN_SIGMA)
    z = min(max(-log_gain / deviation, -6.0), 6.0)  # a z that is not a number stays one
    return 1 / (1 + math.exp(-1.5976 * z - 0.07056 * z * z * z))
