import pytest

from torch_diode.hardware.versions import same_release


@pytest.mark.parametrize(
    ("here", "met", "same"),
    [
        ("2.11.0", ["2.11.0"], True),
        ("2.11.1+cu130", ["2.9.1", "2.11.0"], True),
        ("2.11.0", ["2.1.0", "2.12.0"], False),
        ("3.6.0+git1234", ["3.6"], True),
        ("", ["2.11.0"], False),
        ("2.11.0", [], False),
    ],
)
def test_a_release_is_the_same_whatever_its_patch_or_build(here, met, same):
    assert same_release(here, met) is same
