from dataclasses import replace

import pytest
import torch

from torch_diode.files.tables import write_table
from torch_diode.hardware import detect
from torch_diode.integration import registration, tuned_tables
from torch_diode.integration.default_heuristic import default_heuristic
from torch_diode.integration.settings import Settings
from torch_diode.integration.tuned_tables import TunedFolder, tuned_folder, tuned_folders
from torch_diode.types.candidate import ATEN, ONEDNN, Candidate
from torch_diode.types.problem import MMShape
from torch_diode.types.table import Table, TableEntry

PROBLEM = MMShape("mm", 24, 56, 72, dtype="float32")


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_DIODE_HOME", str(tmp_path))
    monkeypatch.setenv("TORCH_DIODE_MODEL", "none")
    torch.compiler.reset()
    yield
    registration.disable()


def keep(folder: TunedFolder) -> None:
    entries = (TableEntry(Candidate(ONEDNN), 10.0), TableEntry(Candidate(ATEN), 20.0))
    folder.path.mkdir(parents=True)
    write_table(Table(((folder.hardware, PROBLEM, entries),)), folder.table)


def compiled() -> registration.Status:
    registration.enable()
    torch.compile(torch.mm)(torch.randn(24, 72), torch.randn(72, 56))
    return registration.status()


def test_the_table_of_this_cpu_threads_and_release_decides():
    keep(tuned_folder(detect("cpu")))
    status = compiled()
    assert list(status.heuristics.values()) == ["tuned table, decides alone"]
    assert registration.explain()[-1].winner.candidate == Candidate(ONEDNN)
    assert not status.notes


@pytest.mark.parametrize(
    "other", [{"threads": 96}, {"torch": "1.13"}, {"hardware": "amd-zen1"}], ids=str
)
def test_another_table_is_not_used_and_the_status_says_so_in_a_line(other):
    keep(replace(tuned_folder(detect("cpu")), **other))
    status = compiled()
    assert not any("tuned table" in used for used in status.heuristics.values())
    (note,) = status.notes
    assert f"{next(iter(other.values()))}" in note
    assert "is not used" in note
    assert "torch-diode tune" in note


def test_nothing_kept_is_nothing_to_say():
    assert tuned_tables.why_unused(detect("cpu")) == ""
    assert compiled().notes == ()


def test_a_named_model_or_the_switch_leaves_it_out():
    chip = detect("cpu")
    keep(tuned_folder(chip))
    assert default_heuristic(chip, Settings(model="none")) is not None
    assert default_heuristic(chip, Settings(model="none", tuned=False)) is None
    assert "tuned table" not in str(vars(default_heuristic(chip, Settings(model="shipped")) or 0))


def test_its_rows_are_part_of_the_key_of_compiled_graphs():
    before = registration._registration.matmul.decider.heuristics
    registration.enable()
    first = before.fingerprint(["cpu"])
    keep(tuned_folder(detect("cpu")))
    registration.enable()
    assert before.fingerprint(["cpu"]) not in ("", first)


def test_folders_are_told_by_their_names(tmp_path):
    gpu = TunedFolder("nvidia-h200", 0, "2.13")
    cpu = TunedFolder("amd-zen5", 12, "2.9")
    for folder in (gpu, cpu):
        folder.path.mkdir(parents=True)
    (tmp_path / "tuned" / "notes").mkdir()
    assert list(tuned_folders()) == [cpu, gpu]
