import json

import pytest
import torch

import torch_diode as package
from tests.cli.program import inside, told_off, torch_diode


def test_programs_learn_what_is_installed_and_which_chip_this_is():
    ended = inside("--device", "cpu", "status", "--json")
    assert ended.code == 0, ended.err
    facts = json.loads(ended.out)
    assert facts["distribution"].endswith(package.__version__)
    assert facts["torch"] == torch.__version__
    assert facts["hardware"]["kind"] == "cpu"


def test_a_device_that_is_none_or_not_here_is_one_sentence():
    assert "device: got 'cuda:x'; expected cuda" in told_off("--device", "cuda:x", "status")
    if not torch.cuda.is_available():
        assert "this machine has no such device" in told_off("--device", "cuda:0", "status")


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("TORCH_DIODE", "garbage", "TORCH_DIODE: got 'garbage'; expected 1 or 0"),
        ("TORCH_DIODE_TOP", "many", "TORCH_DIODE_TOP: got 'many'"),
        ("TORCH_DIODE_MODEL", "nonexistent.pt", "nonexistent.pt: no such file"),
        ("TORCH_DIODE_TABLE", "nonexistent.json", "nonexistent.json: no such file"),
    ],
)
def test_a_wrong_switch_or_file_is_told_at_once_and_is_exit_code_1(name, value, said):
    ended = torch_diode("--device", "cpu", "status", **{"TORCH_DIODE": "1", name: value})
    assert ended.returncode == 1, ended
    assert "failed" in ended.stdout
    assert said in ended.stdout
    assert "Traceback" not in ended.stderr
