import numpy as np
import pytest

from tests.samples import H200
from torch_diode.hardware import known, with_threads
from torch_diode.model.features.problem_arrays import ProblemArrays
from torch_diode.model.features.roofline import CALL_US, LAUNCH_US, bounds, roofline_us
from torch_diode.types.problem import MMShape

SQUARE, ROW = MMShape("mm", 8192, 8192, 8192), MMShape("mm", 1, 8192, 8192)


def arrays(*problems: MMShape, threads: int = 0) -> ProblemArrays:
    return ProblemArrays.concat([ProblemArrays.of(problem, threads) for problem in problems])


def test_the_roofline_is_a_launch_and_the_arithmetic_or_the_traffic():
    found = bounds(arrays(SQUARE, ROW), H200)
    compute = SQUARE.flops / (H200.peak_tflops("bfloat16") * 1e6)
    memory = ROW.bytes_moved / (H200.memory_gbps * 1e3)
    assert found.compute_us[0] == pytest.approx(compute, rel=1e-5)
    assert found.memory_us[1] == pytest.approx(memory, rel=1e-5)
    assert found.roofline_us.tolist() == pytest.approx(
        [compute + LAUNCH_US, memory + LAUNCH_US], rel=1e-5
    )


def test_a_cpus_threads_share_the_work_and_small_operands_come_from_a_cache():
    problems = [MMShape("mm", n, n, n, dtype="float32") for n in (64, 2048)]
    one, two = (
        roofline_us(arrays(*problems, threads=n), with_threads(known("amd-zen5"), n))
        for n in (1, 2)
    )
    assert np.allclose(one - CALL_US, 2 * (two - CALL_US), rtol=1e-4)
    chip = with_threads(known("amd-zen5"), 1)
    small, large = (bounds(arrays(p, threads=1), chip) for p in problems)
    assert small.moved[0] / small.memory_us[0] > 3 * large.moved[0] / large.memory_us[0]
