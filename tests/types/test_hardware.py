import json
import re

import pytest

from torch_diode.hardware import known, known_names
from torch_diode.types.errors import InvalidValueError
from torch_diode.types.hardware import Hardware


@pytest.mark.parametrize("name", known_names())
def test_hardware_survives_json(name):
    chip = known(name)
    assert Hardware.from_dict(json.loads(json.dumps(chip.to_dict()))) == chip
    assert isinstance(hash(chip), int)


def test_what_is_not_known_is_left_out_and_reads_as_nothing():
    assert Hardware("my-chip", "cuda").to_dict() == {"name": "my-chip", "kind": "cuda"}
    assert Hardware("my-chip", "cuda").peak_tflops("bfloat16") == 0.0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"name": "NVIDIA H200"}, "Hardware.name"),
        ({"kind": "tpu"}, "Hardware.kind: got 'tpu'"),
        ({"units": -1}, "Hardware.units: got -1"),
        ({"tflops": {"bfloat16": -1}}, "Hardware.bfloat16: got -1"),
        ({"tflops": 5}, "hardware.tflops: got 5"),
        ({"colour": "green"}, "unknown field 'colour'"),
    ],
)
def test_a_bad_field_is_refused_by_name(change, said):
    with pytest.raises(InvalidValueError, match=re.escape(said)):
        Hardware.from_dict({"name": "my-chip", "kind": "cuda", **change})
