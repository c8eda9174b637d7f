import pytest

from tests.samples import ATEN, LINEAR
from torch_diode.files.tables import write_table
from torch_diode.integration.tuned_tables import TunedFolder
from torch_diode.tuning.kept import ALL, forget, list_kept
from torch_diode.types.errors import EmptySelectionError
from torch_diode.types.table import Table, TableEntry

GPU, CPU = TunedFolder("nvidia-h200", 0, "2.13"), TunedFolder("amd-zen5", 2, "2.13")


@pytest.fixture(autouse=True)
def kept(tmp_path, monkeypatch):
    """A table of a GPU, and of a CPU timings alone, as after a kill."""
    monkeypatch.setenv("TORCH_DIODE_HOME", str(tmp_path))
    for folder in (GPU, CPU):
        folder.path.mkdir(parents=True)
    write_table(Table(((GPU.hardware, LINEAR, (TableEntry(ATEN, 1.0),)),)), GPU.table)
    CPU.timings.write_bytes(b"x" * 1000)


def test_what_is_kept_is_listed_with_its_problems_and_its_size():
    cpu, gpu = list_kept()
    assert (cpu.folder, cpu.problems, cpu.bytes) == (CPU, 0, 1000)
    assert (gpu.folder, gpu.problems, gpu.bytes) == (GPU, 1, GPU.table.stat().st_size)


def test_one_or_all_can_be_forgotten_and_nothing_else():
    with pytest.raises(EmptySelectionError, match="expected all or one of: amd-zen5-2-threads"):
        forget("amd-zen5")
    assert forget("nvidia-h200-torch-2.13") == [GPU]
    assert [one.folder for one in list_kept()] == [CPU]
    assert forget(ALL) == [CPU]
    assert list_kept() == []
    with pytest.raises(EmptySelectionError, match="nothing is kept"):
        forget(ALL)
