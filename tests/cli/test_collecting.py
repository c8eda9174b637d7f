from __future__ import annotations

import pytest

from torch_diode.cli import collecting
from torch_diode.collection.forking import apart
from torch_diode.types.problem import MMShape


def test_inductors_lists_come_back_from_another_process():
    pytest.importorskip("triton")
    from torch_diode.hardware import known

    problem = MMShape("mm", 256, 256, 256)
    lists = apart(collecting.default_lists, [problem], known("nvidia-h200"))
    assert len(lists[problem]) > 10
