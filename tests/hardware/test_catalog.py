import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from torch_diode.hardware import known, known_names, normalise, reported_names, stand_ins
from torch_diode.types.errors import HardwareMismatchError, InvalidValueError
from torch_diode.types.hardware import Hardware


@pytest.mark.parametrize(
    ("reported", "name"),
    [
        ("NVIDIA H200", "nvidia-h200"),
        ("NVIDIA H100 80GB HBM3", "nvidia-h100"),
        ("Tesla V100-SXM2-16GB", "nvidia-v100"),
        ("AMD Instinct MI300X", "amd-instinct-mi300x"),
        ("Intel(R) Data Center GPU Max 1550", "intel-data-center-gpu-max-1550"),
        ("Intel(R) Xeon(R) Platinum 8480+ CPU @ 2.00GHz", "intel-xeon-platinum-8480"),
    ],
)
def test_reported_names_are_normalised(reported, name):
    assert normalise(reported) == name


@given(st.text(max_size=40))
@example("0_CPU")
@example("CPU_")
def test_normalising_is_idempotent_or_refused(raw):
    try:
        name = normalise(raw)
    except InvalidValueError:
        return
    assert normalise(name) == name
    assert Hardware(name, "cuda").name == name


@pytest.mark.parametrize("raw", ["", "!!!", None, 5, "\n"])
def test_invalid_names_are_refused(raw):
    with pytest.raises(InvalidValueError, match="expected a chip's name"):
        normalise(raw)


def test_every_reported_name_leads_to_its_chip():
    for name in known_names():
        for reported in reported_names(name):
            assert normalise(reported) == name
        assert known(name).name == name


def test_an_unknown_chip_is_refused_with_the_list_of_known_ones():
    with pytest.raises(HardwareMismatchError, match="got 'nvidia-h999'; expected one of nvidia-h2"):
        known("nvidia-h999")
    assert reported_names("nvidia-h999") == ("nvidia-h999",)


def test_stand_ins_are_the_chip_itself_then_those_of_its_entry():
    offered = ["nvidia-a100", "nvidia-h20", "nvidia-h100", "nvidia-h200"]
    assert stand_ins(known("nvidia-h200"), offered) == ["nvidia-h200", "nvidia-h100", "nvidia-h20"]


def test_an_unknown_chip_uses_chips_of_its_architecture():
    chip = Hardware("nvidia-h999", "cuda", arch="sm_90")
    assert stand_ins(chip, ["nvidia-a100", "nvidia-h100"]) == ["nvidia-h100"]


def test_another_architecture_never_stands_in():
    for name in known_names():
        chip = known(name)
        for other in stand_ins(chip, known_names()):
            assert known(other).arch == chip.arch
    assert stand_ins(Hardware("my-chip", "cpu"), known_names()) == []
