from __future__ import annotations

import torch

from torch_diode.collection.installed import releases


def test_the_releases_are_those_installed():
    assert releases()["torch"] == torch.__version__.partition("+")[0]
