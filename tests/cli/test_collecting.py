from __future__ import annotations

import os

import pytest
import torch

from torch_diode.cli import collecting
from torch_diode.types.errors import MissingPartError
from torch_diode.types.problem import MMShape


def fail(text: str) -> None:
    raise MissingPartError(text)


def test_what_is_asked_apart_is_answered_by_another_process():
    assert collecting.apart(os.getpid) != os.getpid()


def test_an_error_of_the_other_process_is_raised_here():
    with pytest.raises(MissingPartError, match="no such part"):
        collecting.apart(fail, "no such part")


def test_inductors_lists_come_back_from_another_process():
    pytest.importorskip("triton")
    from torch_diode.hardware import known

    problem = MMShape("mm", 256, 256, 256)
    lists = collecting.apart(collecting.default_lists, [problem], known("nvidia-h200"))
    assert len(lists[problem]) > 10


@pytest.mark.parametrize(
    ("device", "visible", "expected"),
    [
        (None, None, None),
        ("cuda", "2,3", "2,3"),
        ("cuda:1", None, "1"),
        ("cuda:1", "2,3", "3"),
        ("cuda:0", "GPU-a,GPU-b", "GPU-a"),
    ],
)
def test_cuda_sees_the_chosen_device_alone(device, visible, expected, monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    collecting._show_only(device)
    assert os.environ.get("CUDA_VISIBLE_DEVICES") == expected
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def test_the_releases_are_those_installed():
    assert collecting.releases()["torch"] == torch.__version__.partition("+")[0]
