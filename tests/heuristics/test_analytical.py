from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.samples import H200
from tests.strategies import candidates, problems
from torch_diode import Candidate, Candidates, MMShape
from torch_diode.candidates import candidate_space
from torch_diode.hardware import known, known_names
from torch_diode.heuristics.analytical import AnalyticalHeuristic
from torch_diode.heuristics.testing.conformance import check_heuristic
from torch_diode.heuristics.tile_model import Constants

ANALYTICAL = AnalyticalHeuristic()
GPUS = [name for name in known_names() if known(name).kind == "cuda"]
sizes = st.integers(1, 1 << 14)


def aten_us(problem: MMShape) -> float:
    space = candidate_space(problem, H200, ["aten"])
    return float(ANALYTICAL.predict_us(problem, space, H200)[0])


def winner(problem: MMShape) -> Candidate:
    space = candidate_space(problem, H200)
    ranking = ANALYTICAL.rank(problem, space, H200)
    return space[int(ranking.order[0])]


@pytest.mark.parametrize(
    ("sizes", "measured_us"),
    [((4096, 4096, 4096), 177), ((256, 13824, 768), 15), ((8192, 8192, 640), 130)],
)
def test_atens_time_is_within_a_third_of_what_was_measured_on_an_h200(sizes, measured_us):
    predicted = aten_us(MMShape("mm", *sizes, transpose_b=True))
    assert measured_us / 1.33 < predicted < measured_us * 1.33


def test_aten_wins_large_aligned_problems_and_triton_tiny_ones():
    for size in (2048, 4096, 8192):
        assert winner(MMShape("mm", size, size, size)).template == "aten"
    assert winner(MMShape("mm", 128, 128, 128)).template.startswith("triton::")


def test_splitting_k_beats_aten_where_k_is_all_there_is():
    problem = MMShape("mm", 16, 16, 65536)
    space = candidate_space(problem, H200)
    times = ANALYTICAL.predict_us(problem, space, H200)
    splits = times[space.is_template("decompose_k")]
    assert splits.min() < times[space.is_template("aten")][0]


@settings(deadline=None, max_examples=60)
@given(m=sizes, n=sizes, k=sizes, name=st.sampled_from(GPUS))
def test_no_prediction_beats_the_roofline(m, n, k, name):
    problem, hardware = MMShape("mm", m, n, k), known(name)
    space = candidate_space(problem, hardware)
    ranking = ANALYTICAL.rank(problem, space, hardware)
    if ranking is None:
        assert ANALYTICAL.why_abstained(problem, space, hardware)
        return
    memory = problem.bytes_moved / (hardware.memory_gbps * 1e3)
    arithmetic = problem.flops / (hardware.peak_tflops("bfloat16") * 1e6)
    assert ranking.predicted_us.min() >= max(memory, arithmetic)
    assert np.isfinite(ranking.predicted_us).all()


@settings(deadline=None)
@given(problem=problems(), given_candidates=st.lists(candidates(), max_size=8, unique=True))
def test_any_candidates_of_any_problem_get_an_answer_or_a_reason(problem, given_candidates):
    offered = Candidates.of(given_candidates)
    ranking = ANALYTICAL.rank(problem, offered, H200)
    assert (ranking is None) == bool(ANALYTICAL.why_abstained(problem, offered, H200))
    if ranking is not None:
        assert sorted(ranking.order.tolist()) == list(range(len(offered)))


@pytest.mark.parametrize("field", ["units", "memory_gbps", "tflops"])
def test_it_abstains_on_hardware_with_unknown_properties(field):
    lacking = replace(H200, **{field: () if field == "tflops" else 0})  # type: ignore[arg-type]
    problem = MMShape("mm", 512, 512, 512)
    space = candidate_space(problem, lacking)
    assert ANALYTICAL.rank(problem, space, lacking) is None
    assert field in ANALYTICAL.why_abstained(problem, space, lacking)


def test_it_abstains_on_a_template_without_a_model():
    two = Candidates.of([Candidate("aten"), Candidate("cutlass_gemm")])
    problem = MMShape("mm", 512, 512, 512)
    assert ANALYTICAL.rank(problem, two, H200) is None
    assert "cutlass_gemm" in ANALYTICAL.why_abstained(problem, two, H200)


def test_it_conforms_on_every_known_gpu():
    report = check_heuristic(ANALYTICAL, H200).raise_if_failed()
    assert report.answered > report.questions / 2
    problems = [MMShape("mm", 1, 4096, 4096), MMShape("bmm", 200, 72, 1000, B=3)]
    for name in GPUS:
        check_heuristic(ANALYTICAL, known(name), problems).raise_if_failed()


def test_the_fingerprint_follows_the_constants():
    other = AnalyticalHeuristic(Constants(launch_us=3.0))
    assert other.fingerprint() != ANALYTICAL.fingerprint()
    assert AnalyticalHeuristic().fingerprint() == ANALYTICAL.fingerprint()
