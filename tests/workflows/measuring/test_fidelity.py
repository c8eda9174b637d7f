import numpy as np
import pytest

from torch_diode import Candidate, Dataset, MMShape, Timing, TritonGEMMConfig
from workflows.measuring.fidelity import agreements, rank_correlation

TINY = MMShape("mm", 64, 64, 64)
ATEN = Candidate("aten")
CONFIGS = [
    Candidate("triton::mm", TritonGEMMConfig(64, 64, 32, num_stages=s, num_warps=w))
    for s in (2, 3, 4)
    for w in (4, 8)
]


def dataset(times: dict[MMShape, dict[Candidate, float | None]], method: str) -> Dataset:
    return Dataset.from_timings(
        Timing(
            "nvidia-h200",
            problem,
            candidate,
            time_us,
            status="failed" if time_us is None else "ok",
            method=method,
        )
        for problem, found in times.items()
        for candidate, time_us in found.items()
    )


def test_rank_correlation_with_ties_and_constants():
    assert rank_correlation([1, 2, 3, 9], [10, 11, 30, 31]) == pytest.approx(1)
    assert rank_correlation([1, 2, 3, 9], [4, 3, 2, 1]) == pytest.approx(-1)
    assert rank_correlation([1, 2, 3], [5, 5, 5]) == 0.0
    # By hand: ranks 1, 2.5, 2.5, 4 against 1, 2, 3, 4.
    assert rank_correlation([1, 2, 2, 3], [1, 2, 3, 4]) == pytest.approx(4.5 / np.sqrt(4.5 * 5))


def test_bias_and_regret_of_a_problem():
    sweep = dict(zip(CONFIGS, (10.0, 11.0, 12.0, 13.0, 14.0, 15.0), strict=True))
    static = {candidate: 0.9 * time_us for candidate, time_us in sweep.items()}
    static[CONFIGS[1]] = 4.5  # not the sweep's choice
    (found,) = agreements(
        dataset({TINY: {ATEN: 20.2, **static}}, "inductor-static"),
        dataset({TINY: {ATEN: 20.0, **sweep}}, "sweep"),
    )
    assert found.configs == len(CONFIGS)
    assert found.aten == pytest.approx(1.01)
    assert found.regret == pytest.approx(9.0 / 4.5)
    assert found.bias == pytest.approx((0.9**5 * 4.5 / 11) ** (1 / 6))
    assert 0.5 < found.rank_correlation < 1
