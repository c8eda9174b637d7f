import numpy as np

from torch_diode.candidates.space import candidate_space
from torch_diode.hardware import known, with_threads
from torch_diode.heuristics import policy
from torch_diode.heuristics.tuned import TunedTable
from torch_diode.types.candidate import Candidate
from torch_diode.types.problem import MMShape
from torch_diode.types.table import Table, TableEntry

CPU = with_threads(known("amd-zen5"), 2)
PROBLEM = MMShape("mm", 128, 512, 512, dtype="float32")


def tuned(**times: float) -> TunedTable:
    entries = sorted(times.items(), key=lambda item: item[1])
    row = tuple(TableEntry(Candidate(name), time) for name, time in entries)
    return TunedTable(Table(((CPU.name, PROBLEM, row),)))


def choice(table: TunedTable, *templates: str, own: str = "aten") -> str | None:
    candidates = candidate_space(PROBLEM, CPU, templates)
    ranking = table.rank(PROBLEM, candidates, CPU)
    if ranking is None:
        return None
    return candidates[int(policy.single_choice_order(ranking, candidates, own)[0])].template


def test_torchs_own_kernel_stays_unless_another_is_faster_beyond_noise():
    assert choice(tuned(aten=100.0, onednn=90.0), "aten", "onednn") == "onednn"
    assert choice(tuned(aten=100.0, onednn=99.0), "aten", "onednn") == "aten"
    assert choice(tuned(aten=100.0, onednn=110.0), "aten", "onednn") == "aten"


def test_a_row_without_packed_weights_abstains_in_a_frozen_graph():
    offered = ("aten", "onednn", "onednn_packed", "mkl_packed")
    table = tuned(aten=100.0, onednn=50.0)
    assert choice(table, *offered, own="mkl_packed") is None
    candidates = candidate_space(PROBLEM, CPU, offered)
    assert "without packed weights" in table.why_abstained(PROBLEM, candidates, CPU)
    whole = tuned(aten=100.0, onednn=50.0, onednn_packed=40.0, mkl_packed=39.9)
    assert choice(whole, *offered, own="mkl_packed") == "mkl_packed"
    assert np.isfinite(whole.rank(PROBLEM, candidates, CPU).predicted_us).all()
