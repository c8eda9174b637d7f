import json

import torch

import torch_diode as package
from tests.cli.program import inside, told_off


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
