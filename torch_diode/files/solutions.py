"""Solution files: configs chosen beforehand, in any of the three forms of `Solution.from_dict`."""

from __future__ import annotations

import os

from torch_diode.files.json import read_json
from torch_diode.types.solution import Solution


def read_solution(path: str | os.PathLike[str]) -> Solution:
    """The solution in a JSON file."""
    solution: Solution = read_json(path, Solution.from_dict)
    return solution
