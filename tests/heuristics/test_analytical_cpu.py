"""The analytical heuristic on CPUs."""

import pytest

from torch_diode import AnalyticalHeuristic, Candidate, Candidates, Hardware, MMShape
from torch_diode.candidates import candidate_space
from torch_diode.hardware import find
from torch_diode.heuristics.testing.conformance import check_heuristic
from torch_diode.types.candidate import CppGEMMConfig

ZEN5 = find("amd-zen5", 2)
INTEL = Hardware("intel-skylake-sp", "cpu", "x86_64", threads=2, instruction_sets=("avx512f",))
LIBRARIES = Candidates.of([Candidate("aten"), Candidate("onednn"), Candidate("onednn_packed")])
ANALYTICAL = AnalyticalHeuristic()


def times(problem, hardware=ZEN5, candidates=LIBRARIES):
    found = ANALYTICAL.predict_us(problem, candidates, hardware)
    return dict(zip(map(str, candidates), found.tolist(), strict=True))


@pytest.mark.parametrize(
    "hardware",
    [ZEN5, INTEL, Hardware("arm-neoverse-v2", "cpu", "aarch64", threads=64)],
    ids=lambda hardware: hardware.name,
)
def test_it_conforms_on_every_cpu(hardware):
    report = check_heuristic(ANALYTICAL, hardware).raise_if_failed()
    assert report.answered > 50


def test_mkl_is_slow_on_other_vendors_cpus():
    large = MMShape("mm", 2048, 2048, 2048, dtype="float32")
    assert times(large)["aten"] > 1.7 * times(large)["onednn"]
    assert times(large, INTEL)["aten"] < 1.1 * times(large, INTEL)["onednn"]


def test_a_packed_weight_spares_the_copy():
    found = times(MMShape("mm", 32, 1024, 1024, dtype="float32"))
    assert found["onednn_packed"] < found["onednn"]


def test_a_blocking_of_more_sums_than_registers_is_slow():
    blockings = [Candidate("cpp::gemm", CppGEMMConfig(*b)) for b in ((8, 16), (16, 64), (1, 16))]
    found = times(
        MMShape("mm", 512, 1024, 1024, dtype="float32"), candidates=Candidates.of(blockings)
    )
    good, spills, waits = found.values()
    assert good < spills
    assert good < waits


def test_without_instructions_for_it_a_half_precision_is_better_converted():
    problem = MMShape("mm", 256, 1024, 1024, dtype="float16")
    both = Candidates.of([Candidate("aten"), Candidate("onednn_f32")])
    assert times(problem, candidates=both)["onednn_f32"] < 0.2 * times(problem)["aten"]


def test_it_abstains_on_what_it_has_no_model_of():
    problem = MMShape("mm", 64, 64, 64, dtype="float32")
    other = Candidates.of([Candidate("aten"), Candidate("decompose_k", split_k=2)])
    assert "decompose_k" in ANALYTICAL.why_abstained(problem, other, ZEN5)
    integers = MMShape("mm", 64, 64, 64, dtype="int8")
    assert "int8" in ANALYTICAL.why_abstained(integers, LIBRARIES, ZEN5)
    assert ANALYTICAL.rank(integers, candidate_space(integers, ZEN5), ZEN5) is None
