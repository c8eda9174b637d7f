"""Which hardware a device is taken for."""

from __future__ import annotations

from torch_diode.hardware import known
from torch_diode.integration import machine


def test_the_innermost_pretence_holds_and_ends() -> None:
    h200, a100 = known("nvidia-h200"), known("nvidia-a100")
    with machine.pretending(h200):
        with machine.pretending(a100):
            assert machine.hardware_of("cuda:0") is a100
        assert machine.hardware_of("cuda:0") is h200
    assert machine.hardware_of("cpu").kind == "cpu"
    assert machine.hardware_of("cpu") is machine.hardware_of("cpu")
