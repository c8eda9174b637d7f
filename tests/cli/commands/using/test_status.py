from __future__ import annotations

import json

import pytest
import torch

import torch_diode as package
from tests.cli.program import refusal, torch_diode


def test_programs_learn_what_is_installed_and_which_chip_this_is():
    ended = torch_diode("--device", "cpu", "status", "--json")
    assert ended.returncode == 0, ended.stderr
    facts = json.loads(ended.stdout)
    assert facts["distribution"].endswith(package.__version__)
    assert facts["torch"] == torch.__version__
    assert facts["hardware"]["kind"] == "cpu"


def test_people_get_a_table():
    ended = torch_diode("--device", "cpu", "status")
    assert ended.returncode == 0, ended.stderr
    assert "distribution" in ended.stdout


def test_a_device_that_is_none_is_one_sentence():
    assert "device: got 'cuda:x'; expected cuda" in refusal("--device", "cuda:x", "status")


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_a_device_that_is_not_here_is_one_sentence():
    assert "this machine has no such device" in refusal("--device", "cuda:0", "status")
