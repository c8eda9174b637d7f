"""validate_max_autotune() as a Python function; tests/cli has the command."""

import json

import pytest

from torch_diode.files.datasets import read_dataset
from torch_diode.files.json import read_json
from torch_diode.toolkit.max_autotune import _loops, validate_max_autotune
from torch_diode.types.candidate import ATEN, Candidate, TritonGEMMConfig
from torch_diode.types.dataset import Dataset
from torch_diode.types.errors import EmptySelectionError, FileFaultError
from torch_diode.types.problem import MMShape
from torch_diode.types.solution import Solution
from torch_diode.types.timing import Timing


@pytest.fixture(scope="module")
def apart(timings):
    return read_dataset(timings / "apart.msgpack")


def test_without_a_solution_one_is_made_of_the_fastest_configs(trained, apart, tmp_path):
    reports, file = [], tmp_path / "solution.json"
    result = validate_max_autotune(apart, file, trained, progress=reports.append)
    assert any("solution.json: did not exist" in report.message for report in reports)
    solution = read_json(file, Solution.from_dict)
    assert result.solution == solution
    assert len(solution.configs) == len(apart.problems)
    fastest = min(
        (t for t in apart if t.candidate.config and t.time_us and t.problem == apart[0].problem),
        key=lambda t: t.time_us,
    )
    sizes = (fastest.problem.M, fastest.problem.N, fastest.problem.K)
    (listed,) = (c for c in solution.configs if (c.op, c.sizes) == (fastest.problem.op, sizes))
    assert dict(listed.fields) == fastest.candidate.config.to_dict()
    assert result.overall.problems == len(apart.problems)
    assert result.overall.solution_with_aten_regret == pytest.approx(1.0, abs=1e-4)
    assert sum(part.problems for part in result.by_op.values()) == len(apart.problems)
    ratios = [top.ratio for top in result.overall.model.values()]
    assert ratios == sorted(ratios, reverse=True)
    reports.clear()
    again = validate_max_autotune(apart, file, trained, progress=reports.append)
    assert again == result, "the file that was written is used"
    assert not any(report.message for report in reports)


@pytest.mark.parametrize("form", ["one list", "by op"])
def test_the_other_forms_of_a_solution(trained, apart, tmp_path, form):
    configs = {t.candidate.config for t in apart if t.candidate.config and t.problem.op == "mm"}
    listed = [{"block_m": c.block_m, "block_n": c.block_n, "block_k": c.block_k} for c in configs]
    solution = {"config": listed} if form == "one list" else {"mm": {"config": listed}}
    (tmp_path / "s.json").write_text(json.dumps(solution))
    result = validate_max_autotune(apart, tmp_path / "s.json", trained)
    assert result.by_op["mm"].solution_regret >= 1
    assert (set(result.by_op) == {"mm"}) == (form == "by op")
    assert bool(result.notes) == (form == "by op")
    total, count = len(apart.problems), result.overall.problems
    scored = f"all {total}" if form == "one list" else f"{count} of {total}"
    assert result.scored_on == f"{scored} problems of the data"


def test_where_all_configs_are_the_solution_the_ratio_is_the_regret(trained, timings, tmp_path):
    data = read_dataset(timings / "without_aten.parquet")
    listed = [c.to_dict() for c in {t.candidate.config for t in data}]
    (tmp_path / "s.json").write_text(json.dumps({"config": listed}))
    overall = validate_max_autotune(data, tmp_path / "s.json", trained).overall
    assert (overall.solution_regret, overall.solution_with_aten_regret) == (1.0, None)
    for top in overall.model.values():
        assert top.ratio == pytest.approx(top.regret)


def test_a_solution_of_other_problems_or_of_a_mistyped_path_is_refused(trained, apart, tmp_path):
    entry = {"M": 3, "N": 3, "K": 3, "block_m": 16, "block_n": 16, "block_k": 16}
    (tmp_path / "s.json").write_text(json.dumps({"name": "x", "configs": [entry]}))
    with pytest.raises(EmptySelectionError, match="none was timed on any problem"):
        validate_max_autotune(apart, tmp_path / "s.json", trained)
    with pytest.raises(FileFaultError, match=r"s\.json: no such file, nor a folder .*nowhere"):
        validate_max_autotune(apart, tmp_path / "nowhere" / "s.json", trained)


def test_stages_tell_kernels_apart_only_where_something_loops() -> None:
    problem = MMShape("mm", 512, 512, 64)
    short, whole = (TritonGEMMConfig(64, 64, k) for k in (32, 64))
    candidates = {
        Candidate("triton::mm", short): True,
        Candidate("triton::mm", whole): False,
        Candidate("triton::mm_persistent_tma", whole): True,
        Candidate(ATEN): True,
    }
    timings = [Timing("nvidia-h200", problem, candidate, 1.0) for candidate in candidates]
    assert _loops(Dataset.from_timings(timings)).tolist() == list(candidates.values())
