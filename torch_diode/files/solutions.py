"""Solution files: configs settled beforehand, in any of the three forms people keep them in."""

from __future__ import annotations

import os

from torch_diode.files.faults import naming
from torch_diode.files.json_form import read_json
from torch_diode.types.solution import Solution


def read_solution(path: str | os.PathLike[str]) -> Solution:
    """The solution in a JSON file."""
    data = read_json(path)
    with naming(path):
        return Solution.from_dict(data)
