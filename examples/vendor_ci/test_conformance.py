"""Conformance of every heuristic you ship. Add your own to the list."""

from __future__ import annotations

import os

import pytest

import torch_diode as td
from torch_diode.heuristics.testing.conformance import check_heuristic
from torch_diode.model.checkpoint import load_model

HEURISTICS = [
    td.ModelHeuristic(load_model(os.environ["MODEL"]), "trained model"),
    td.AnalyticalHeuristic(),
]


@pytest.mark.parametrize("heuristic", HEURISTICS, ids=lambda heuristic: heuristic.name)
def test_it_conforms(heuristic):
    print(check_heuristic(heuristic).raise_if_failed())
