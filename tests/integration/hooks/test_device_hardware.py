from torch_diode.hardware import known
from torch_diode.integration.hooks.device_hardware import hardware_of, pretending


def test_the_innermost_pretended_hardware_holds_until_it_ends(h200):
    a100 = known("nvidia-a100")
    with pretending(h200):
        with pretending(a100):
            assert hardware_of("cuda:0") is a100
        assert hardware_of("cuda:0") is h200
    assert hardware_of("cpu").kind == "cpu"
    assert hardware_of("cpu") is hardware_of("cpu")
