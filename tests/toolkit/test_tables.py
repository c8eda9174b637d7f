"""Tables of datasets, with ranges of M, and of a model's decisions."""

import pytest

from torch_diode.hardware import known
from torch_diode.heuristics.model import ModelHeuristic
from torch_diode.heuristics.table import LookupTable
from torch_diode.integration.rank import plain_ranking, single_choice
from torch_diode.model.registry import load_registered
from torch_diode.toolkit.tables import build_table, build_table_from_model
from torch_diode.types.candidate import ATEN, Candidate, TritonGEMMConfig
from torch_diode.types.dataset import Dataset
from torch_diode.types.errors import EmptySelectionError
from torch_diode.types.problem import MMShape
from torch_diode.types.timing import Timing

A, B, C = (Candidate("triton::mm", TritonGEMMConfig(16, 16, k)) for k in (16, 32, 64))


def dataset(*times, spread=0.0, threads=0):
    """Timings of A, B and C by M."""
    return Dataset.from_timings(
        Timing("nvidia-h200", MMShape("mm", m, 64, 64), c, us, spread=spread, threads=threads)
        for m, *measured in times
        for c, us in zip((A, B, C), measured, strict=True)
    )


def spans(table):
    return [(p.M, e[0].M, [entry.candidate for entry in e]) for _, p, e in table]


def test_problems_that_one_candidate_is_best_in_become_one_row():
    timings = dataset((16, 1, 2, 2), (24, 1, 2, 2), (40, 1, 2, 2), (64, 2, 1, 2), (256, 2, 1, 2))
    table = build_table(timings, ranges=True)
    # From 64 to 256 nothing was measured between.
    assert spans(table) == [(40, (16, 40), [A]), (64, None, [B]), (256, None, [B])]
    assert table.rows[0][2][0].time_us == 1
    assert len(build_table(timings)) == 5


def test_within_noise_counts_as_best_and_the_fastest_on_average_is_first():
    times = ((16, 1.00, 1.02, 9), (24, 1.04, 1.00, 9))
    assert spans(build_table(dataset(*times, spread=0.005), 2, ranges=True)) == [
        (16, None, [A, B]),
        (24, None, [B, A]),
    ]
    assert spans(build_table(dataset(*times, spread=0.03), 2, ranges=True)) == [
        (24, (16, 24), [B, A])
    ]


def test_the_threads_of_a_cpu_are_chosen():
    both = Dataset.merge([dataset((8, 1, 2, 3), threads=n) for n in (1, 2)])
    assert dict(build_table(both, threads=2).provenance)["threads"] == "2"
    with pytest.raises(EmptySelectionError, match="no timing with 3 threads"):
        build_table(both, threads=3)


def test_a_models_decisions_are_those_of_a_compile():
    chip = known("nvidia-h200")
    problems = [MMShape("mm", m, 4096, 4096, transpose_b=True) for m in (8, 300, 4096)]
    said = []
    table = build_table_from_model(
        "shipped", [*problems, MMShape("mm", 8, 8, 8, dtype="float64")], 3, chip.name, said.append
    )
    heuristic = ModelHeuristic(load_registered(hardware=chip))
    for problem in problems:
        space, ranking = plain_ranking(problem, heuristic, chip)
        answer = LookupTable(table).rank(problem, space, chip)
        assert space[int(answer.order[0])] == single_choice(space, ranking)
        assert len(answer.order) == 3
    assert "1 problems left out, such as mm:8x8x8:float64:nn: the model was not" in said[0].message
    assert dict(table.provenance)["torch"] == ", ".join(heuristic.model.metadata.torch)
    hashed = {e.candidate.template: e.template_hash for _, _, found in table for e in found}
    assert hashed["triton::mm"]
    assert not hashed.get(ATEN)
    with pytest.raises(EmptySelectionError, match="decides none of them"):
        build_table_from_model("shipped", [MMShape("mm", 8, 8, 8, dtype="float64")], 1, chip.name)


def test_a_cpu_models_rows_have_decisions_for_plain_and_for_frozen_graphs():
    problem = MMShape("mm", 512, 512, 512, transpose_b=True, dtype="float32")
    table = build_table_from_model("shipped", [problem], hardware="amd-zen5", threads=1)
    ((name, found, entries),) = table
    assert (name, found, dict(table.provenance)["threads"]) == ("amd-zen5", problem, "1")
    templates = [entry.candidate.template for entry in entries]
    assert len(templates) == 2
    assert templates[0] in ("aten", "onednn")
    assert templates[1] in ("onednn_packed", "mkl_packed", "cpp::gemm")
