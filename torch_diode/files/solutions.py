"""Solution files: configs settled beforehand, in any of the three forms people keep them in."""

from __future__ import annotations

import os

from torch_diode.files.file_errors import naming_file
from torch_diode.files.json import read_json
from torch_diode.types.solution import Solution


def read_solution(path: str | os.PathLike[str]) -> Solution:
    """The solution in a JSON file."""
    data = read_json(path)
    with naming_file(path):
        return Solution.from_dict(data)
