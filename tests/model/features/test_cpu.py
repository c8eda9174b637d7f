"""Features of a CPU's problems: one extractor for datasets and compiles, with meaning."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from tests.cpu_timings import cpu_timings
from tests.strategies import problems as any_problem
from torch_diode import Hardware, MMShape
from torch_diode.hardware import find
from torch_diode.model.features.cpu import cpu_features
from torch_diode.model.features.names import CPU_NAMES
from torch_diode.model.features.problem_arrays import OneProblem, ProblemArrays
from torch_diode.model.features.roofline import roofline_us
from torch_diode.model.features.table import feature_table

ZEN5 = find("amd-zen5", 2)


def values(problem: MMShape, threads: int = 2, hardware: Hardware = ZEN5) -> dict[str, float]:
    row = cpu_features(OneProblem(problem, threads), hardware)[0]
    return dict(zip(CPU_NAMES, row.tolist(), strict=True))


def linear(m: int, n: int, k: int, **more: object) -> MMShape:
    return MMShape("mm", m, n, k, dtype="float32", **more)  # type: ignore[arg-type]


@given(any_problem())
def test_arrays_and_a_single_problem_agree(problem):
    one = cpu_features(OneProblem(problem, 2), ZEN5)
    arrays = cpu_features(ProblemArrays.of(problem, 2), ZEN5)
    assert one.shape == (1, len(CPU_NAMES))
    assert np.isfinite(one).all()
    assert one == pytest.approx(arrays, rel=1e-5, abs=1e-5)


def test_a_dataset_has_the_features_of_its_problems():
    dataset = cpu_timings(4)
    table = feature_table(dataset, find("amd-zen5", 7))
    for number, row in enumerate(dataset.problems.first.tolist()):
        threads = dataset[row].threads
        one = cpu_features(OneProblem(dataset.problem(row), threads), find("amd-zen5", threads))
        assert table.problem[number] == pytest.approx(one[0], rel=1e-5, abs=1e-5)
    assert set(table.labels) == {str(timing.candidate) for timing in dataset}


def test_edges_alignment_and_aliasing():
    found = values(linear(13, 100, 1024))
    assert found["fill_12_rows"] == pytest.approx(13 / 24)
    assert found["fill_64_columns"] == pytest.approx(100 / 128)
    assert (found["row_a_aliases_4096"], found["row_b_aliases_1024"]) == (1, 0)
    assert (found["row_b_by_4"], found["row_b_by_8"]) == (1, 0)
    turned = values(linear(13, 100, 1024, transpose_b=True))
    assert turned["row_b_aliases_4096"] == 1


def test_more_threads_share_the_work():
    problem = linear(512, 768, 768)
    one, two = (float(roofline_us(OneProblem(problem, n), ZEN5)) for n in (1, 2))
    assert one == pytest.approx(2 * two - 1)
    assert values(problem, 1)["log2_threads"] == 0
    assert values(problem, 2)["log2_threads"] == 1


def test_a_cpu_of_the_catalog_is_the_same_whatever_its_caches_are_reported_as():
    odd = replace(ZEN5, l3_bytes=1 << 30)
    assert values(linear(64, 64, 64), hardware=odd) == values(linear(64, 64, 64))


def test_an_unknown_cpu_has_plausible_rates():
    wide = Hardware("abacus-8", "cpu", "x86_64", threads=4, instruction_sets=("avx2", "avx512f"))
    narrow = Hardware("abacus-7", "cpu", "x86_64", threads=4)
    times = [float(roofline_us(OneProblem(linear(2048, 2048, 2048), 4), h)) for h in (wide, narrow)]
    assert 10_000 < times[0] < times[1] < 200_000
