"""Which hardware a device is taken for."""

from __future__ import annotations

from torch_diode.hardware import known
from torch_diode.integration.hooks import device_hardware


def test_the_innermost_pretence_holds_and_ends() -> None:
    fake_h200, a100 = known("nvidia-h200"), known("nvidia-a100")
    with device_hardware.pretending(fake_h200):
        with device_hardware.pretending(a100):
            assert device_hardware.hardware_of("cuda:0") is a100
        assert device_hardware.hardware_of("cuda:0") is fake_h200
    assert device_hardware.hardware_of("cpu").kind == "cpu"
    assert device_hardware.hardware_of("cpu") is device_hardware.hardware_of("cpu")
