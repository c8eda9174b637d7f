from dataclasses import replace

import pytest

from torch_diode.collection import devices
from torch_diode.hardware import detect, known
from torch_diode.types.errors import InvalidValueError

H200, H100 = known("nvidia-h200"), known("nvidia-h100")


@pytest.mark.parametrize(
    ("visible", "index", "expected"),
    [(None, 1, "1"), ("", 0, "0"), ("2,3", 1, "3"), ("2, 3", 1, "3"), ("GPU-a,GPU-b", 0, "GPU-a")],
)
def test_the_visible_name_selects_the_gpu(visible, index, expected, monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert devices.visible_name(index) == expected


def test_the_cpu_has_one_timing_process():
    assert devices.find_devices("cpu") == devices.Devices(detect("cpu"), ("cpu",))
    assert devices.find_devices("cpu:0").names == ("cpu",)


def test_a_cpu_is_one_chip_per_thread_count():
    cpu = replace(detect("cpu"), units=4, threads=3)
    assert devices.by_threads(cpu) == (cpu,)
    assert [chip.threads for chip in devices.by_threads(cpu, (2, 1, 2))] == [2, 1]
    assert devices.by_threads(H200) == (H200,)
    with pytest.raises(InvalidValueError, match="--threads: got 5; expected at most 4, the cores"):
        devices.by_threads(cpu, (1, 5))


@pytest.fixture
def machine(monkeypatch):
    """Two chips of one kind and one of another."""
    chips = [("0", H200), ("1", H100), ("2", H200)]
    monkeypatch.setattr(devices, "run_in_subprocess", lambda function, *arguments: chips)


def test_all_gpus_of_the_first_ones_kind_are_used(machine):
    assert devices.find_devices(None) == devices.Devices(H200, ("0", "2"), ("nvidia-h100",))


def test_fewer_workers_than_gpus_are_allowed_and_more_are_not(machine):
    assert devices.find_devices("cuda", 1).names == ("0",)
    with pytest.raises(InvalidValueError, match="got 3; expected at most 2"):
        devices.find_devices("cuda", 3)
