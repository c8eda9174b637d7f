from __future__ import annotations

import importlib.metadata

import torch

from torch_diode.hardware.installed import versions


def test_the_releases_are_those_installed():
    assert versions()["torch"] == torch.__version__.partition("+")[0]


def test_one_that_comes_under_another_name_is_asked_itself(monkeypatch):
    def unknown(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", unknown)
    assert versions()["torch"] == torch.__version__.partition("+")[0]
