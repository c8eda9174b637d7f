"""Lowering for a GPU that is not here."""

import pytest
import torch

from tests.integration.cases import inputs
from torch_diode.hardware import detect
from torch_diode.integration.capture.fake_gpu import lower, pretend
from torch_diode.integration.hooks import device_hardware
from torch_diode.types.errors import InvalidValueError
from torch_diode.types.hardware import Hardware


def test_torch_sees_the_fake_chip_only_inside(h200):
    available = torch.cuda.is_available()
    with pretend(h200):
        assert torch.cuda.is_available()
        assert detect("cuda").name == "nvidia-h200"
        properties = torch.cuda.get_device_properties(0)
        assert (properties.major, properties.multi_processor_count) == (9, 132)
        assert properties.shared_memory_per_block_optin == 232448
        assert device_hardware.hardware_of("cuda:0") == h200
    assert torch.cuda.is_available() is available


@pytest.mark.usefixtures("fake_h200")
def test_plain_torch_lowers_to_the_vendors_kernel():
    lowered = lower(torch.mm, inputs("mm"))
    assert lowered.kernels == ["mm"]
    assert lowered.configs == []


@pytest.mark.parametrize(
    "hardware", [Hardware("amd-mi300x", "rocm", "gfx942"), Hardware("odd", "cuda", "x")]
)
def test_other_chips_are_refused(hardware):
    with pytest.raises(InvalidValueError, match="expected"), pretend(hardware):
        pass
