"""The heuristic used where none is named."""

import subprocess
import sys
import warnings

import pytest
import torch

from tests.integration.cases import CONFIG, MAX_AUTOTUNE, inputs
from tests.samples import H200
from torch_diode import Candidate, Chain, Hardware, LookupTable, MMShape, ModelHeuristic, Table
from torch_diode.candidates import candidate_space
from torch_diode.files.tables import write_table
from torch_diode.hardware import find, known
from torch_diode.integration import registration
from torch_diode.integration.capture.fake_gpu import lower, pretend
from torch_diode.integration.deciding.decider import Decider
from torch_diode.integration.default_heuristic import default_heuristic
from torch_diode.integration.hooks import torch_compat
from torch_diode.integration.hooks.fallback import DiodeWarning
from torch_diode.integration.settings import Settings
from torch_diode.model.checkpoint import load_weights, save_model
from torch_diode.model.registry import load_registered, shipped_model
from torch_diode.types.table import TableEntry

PROBLEM = MMShape.from_key("mm:384x512x640:bfloat16:nn")
OF_THIS_RELEASE = torch.__version__.startswith("2.11.")
"""True if the shipped model's timings were taken with this torch."""


def table_of(template_hash: str | None = None) -> Table:
    entry = TableEntry(Candidate("triton::mm", CONFIG), 5.0, template_hash)
    return Table((("nvidia-h200", PROBLEM, (entry,)),))


@pytest.mark.usefixtures("fake_h200")
def test_a_table_named_in_the_environment_decides(tmp_path, monkeypatch):
    path = tmp_path / "table.json"
    unmet = ("nvidia-h200", MMShape("mm", 7, 7, 7), (TableEntry(Candidate("aten")),))
    write_table(Table((*table_of().rows, unmet)), path)
    monkeypatch.setenv("TORCH_DIODE_TABLE", str(path))
    registration.register_on_import()
    assert lower(torch.mm, inputs("mm")).configs[0]["BLOCK_M"] == CONFIG.block_m
    assert lower(torch.bmm, inputs("bmm")).kernels == ["bmm"]
    assert registration.explain()[0].source == "table table.json"
    note = (
        "note: table table.json: 1 of 2 rows for nvidia-h200 match no problem met so far, such as"
    )
    for shown in (str(registration.explain()), str(registration.status())):
        assert shown.count(f"{note} {unmet[1]}") == 1


def test_a_cpus_table_is_not_compared_with_triton(tmp_path):
    problem, zen = MMShape("mm", 8, 8, 8, dtype="float32"), known("amd-zen5")
    entry = TableEntry(Candidate("onednn"), 5.0)
    provenance = (("torch", torch.__version__), ("triton", "1.0"))
    write_table(Table(((zen.name, problem, (entry,)),), provenance), tmp_path / "table.json")
    table = default_heuristic(zen, Settings(table=str(tmp_path / "table.json"), model="none"))
    ranking = table.rank(problem, candidate_space(problem, zen, ("aten", "onednn")), zen)
    assert ranking.note == ""


@pytest.mark.usefixtures("fake_h200")
def test_an_unreadable_table_falls_back_with_one_warning(monkeypatch):
    monkeypatch.setenv("TORCH_DIODE_TABLE", "/nowhere/table.json")
    registration.register_on_import()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            assert lower(torch.mm, inputs("mm")).kernels == ["mm"]
    (warning,) = [w for w in caught if w.category is DiodeWarning]
    assert "/nowhere/table.json" in str(warning.message)
    assert registration.status().counters.fallbacks.total() == 2


@pytest.mark.usefixtures("fake_h200")
def test_by_default_the_shipped_model_decides(monkeypatch):
    monkeypatch.delenv("TORCH_DIODE_MODEL")
    registration.register_on_import()
    lower(torch.mm, inputs("mm"))
    (decision,) = registration.explain()
    assert decision.source == "model nvidia-h200"
    assert decision.winner.predicted_us is not None
    noted = any("model trained under torch 2.11" in note for note in registration.status().notes)
    assert noted != OF_THIS_RELEASE


@pytest.mark.parametrize(
    ("name", "model", "decides"),
    [
        ("nvidia-h200", "", True),
        ("nvidia-h100", "", True),
        ("nvidia-gh200", "", True),
        ("nvidia-h20", "", False),
        ("nvidia-h100-pcie", "", False),
        ("nvidia-a100", "", True),
        ("nvidia-a100-40gb", "", True),
        ("nvidia-b200", "", False),
        ("nvidia-h20", "shipped", True),
        ("nvidia-b200", "shipped", False),
        ("nvidia-h200", "none", False),
    ],
)
def test_a_model_decides_for_close_relatives_and_when_named_for_its_architecture(
    name, model, decides
):
    heuristic = default_heuristic(known(name), Settings(model=model))
    assert (heuristic is not None) == decides
    if decides:
        own = name in ("nvidia-a100", "nvidia-h100", "nvidia-h200")
        assert isinstance(heuristic, ModelHeuristic)
        assert ("used on" in heuristic.note) == (not own)
        assert (heuristic.why_shortlists(known(name)) == "") == (name == "nvidia-h200")


@pytest.mark.parametrize("name", ["nvidia-a100", "nvidia-h100", "nvidia-gh200"])
def test_where_a_model_only_shortlists_a_plain_compile_is_torchs_own(name, monkeypatch):
    monkeypatch.delenv("TORCH_DIODE_MODEL")
    with pretend(known(name)):
        plain = lower(torch.mm, inputs("mm")).source
        registration.register_on_import()
        assert lower(torch.mm, inputs("mm")).source == plain
        status = registration.status()
        assert status.counters.decisions == 0
        assert any("shortlists" in reason for reason in status.counters.abstentions)
        assert "shortlists: " in status.heuristics[name]


@pytest.mark.parametrize("name", ["nvidia-a100", "nvidia-h100"])
def test_in_max_autotune_a_shortlist_is_shorter_than_inductors_list_and_has_aten(name, monkeypatch):
    monkeypatch.delenv("TORCH_DIODE_MODEL")
    lists: list[list[str]] = []

    def count(choices):
        lists.append([type(choice).__name__ for choice in choices])
        return choices[:1]  # one is not benchmarked

    undo = torch_compat.add_preprocessing(count)
    try:
        with pretend(known(name)):
            lower(torch.mm, inputs("mm"), MAX_AUTOTUNE, generate=False)
            registration.register_on_import()
            lower(torch.mm, inputs("mm"), MAX_AUTOTUNE, generate=False)
    finally:
        undo()
    default, shortlist = lists
    assert len(shortlist) < len(default)
    assert "ExternKernelCaller" in shortlist
    assert registration.status().counters.decisions == 1


def test_there_is_no_heuristic_for_an_unknown_chip():
    assert default_heuristic(Hardware("unknown-chip", "cuda", "sm_10"), Settings()) is None


def test_the_users_model_comes_first_unless_the_shipped_one_is_named(tmp_path, monkeypatch):
    pointer = shipped_model(H200)
    mine = tmp_path / "matmul/nvidia-h200/mine.pt"
    mine.parent.mkdir(parents=True)
    metadata, weights = load_weights(pointer.path)
    changed = {name: torch.tensor(array) for name, array in weights.items()}
    changed["aten.shift"] += 1
    save_model(mine, changed, metadata)
    before = default_heuristic(H200, Settings())
    monkeypatch.setenv("TORCH_DIODE_MODEL_PATH", str(tmp_path))
    default = default_heuristic(H200, Settings())
    shipped = default_heuristic(H200, Settings(model="shipped"))
    assert shipped.fingerprint() == before.fingerprint() != default.fingerprint()


@pytest.mark.usefixtures("fake_h200")
@pytest.mark.parametrize("chained", [False, True])
@pytest.mark.parametrize("strict", ["", "settings", "table"])
def test_a_named_table_is_checked_against_the_installed_templates(chained, strict):
    if not torch_compat.template_hashes():
        pytest.skip("this torch has no hashes of its templates")
    table = LookupTable(table_of("dead1234"), strict == "table")
    with registration.using(Chain(table) if chained else table, strict=strict == "settings"):
        lower(torch.mm, inputs("mm"), generate=False)
    status = registration.status()
    assert status.counters.decisions == (0 if strict else 1)
    assert status.notes == (() if strict else ("table: template changed since: triton::mm",))


@pytest.mark.usefixtures("fake_h200")
@pytest.mark.parametrize("strict", [False, True])
def test_a_named_model_is_checked_against_the_installed_release(strict):
    model = ModelHeuristic(load_registered("matmul", H200))
    with registration.using(model, strict=strict):
        lower(torch.mm, inputs("mm"), generate=False)
    status = registration.status()
    assert status.counters.decisions == (1 if OF_THIS_RELEASE or not strict else 0)
    assert bool(status.notes) == (not OF_THIS_RELEASE and not strict)


def test_a_decision_does_not_import_the_libraries_of_data_files(monkeypatch):
    """They would be imported in the middle of the first compile."""
    monkeypatch.delenv("TORCH_DIODE_MODEL")
    program = (
        "import sys, torch_diode\n"
        "from torch_diode.types.problem import MMShape\n"
        "best = torch_diode.rank(MMShape('mm', 64, 64, 64), hardware='nvidia-h200', top=1)\n"
        "print(len(best), 'pyarrow' in sys.modules)"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert ended.stdout.split() == [b"1", b"False"]


def test_on_a_cpu_the_model_of_its_threads_decides(cpu_model, monkeypatch):
    monkeypatch.setenv("TORCH_DIODE_MODEL_PATH", str(cpu_model.parents[2]))
    two, many = find("amd-zen5", 2), find("amd-zen5", 64)
    heuristic = default_heuristic(two, Settings())
    assert heuristic is not None
    assert heuristic.name == "model amd-zen5"
    assert default_heuristic(many, Settings()) is None
    found = Decider(Settings()).heuristics
    assert found.of(two) is not None
    assert found.of(many) is None
    assert set(found.loaded()) == {"amd-zen5 with 2 threads", "amd-zen5 with 64 threads"}
