"""What compiled kernels need, read off them: one JSON file an architecture, beside this module.

`workflows/measure_resources.py` writes the files, by compiling Inductor's templates for a named
architecture; no GPU takes part. Each kernel has a row of its config's fields, the shared memory of
a block, the registers of a thread and the bytes it spills; shared memory of -1 says that the
compiler refuses the config.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.errors import FileFaultError
from torch_diode.types.problem import MMShape

VERSION = 1
COLUMNS = (
    "block_m",
    "block_n",
    "block_k",
    "num_stages",
    "num_warps",
    "shared_bytes",
    "registers",
    "spilled_bytes",
)
FOLDER = Path(__file__).parent / "measurements"
_BITS = {"block_m": 13, "block_n": 13, "block_k": 13, "num_stages": 6, "num_warps": 7}

Keys = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class MeasuredKernels:
    """The measured configs of one template, precision and layout, sorted by key."""

    keys: Keys
    shared_bytes: npt.NDArray[np.int32]
    registers: npt.NDArray[np.int32]

    def find(self, keys: Keys) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.intp]]:
        """Which of these have a row, and which row (any row where there is none)."""
        if not len(self.keys):
            return np.zeros(len(keys), bool), np.zeros(len(keys), np.intp)
        rows = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return self.keys[rows] == keys, rows


def kernel_name(template: str, problem: MMShape) -> str:
    """What rows are filed under. float16 needs what bfloat16 needs, and is filed with it."""
    precision = "bfloat16" if problem.precision == "float16" else problem.precision
    return f"{template}/{precision}/{problem.layout}"


def config_keys(candidates: Candidates) -> Keys:
    """A config's fields in one integer. `group_m` is not among them: it moves tiles between
    blocks and changes nothing in what a block needs."""
    keys = np.zeros(len(candidates), np.int64)
    for name, bits in _BITS.items():
        keys <<= bits
        keys |= candidates.fields[name]
    return keys


@lru_cache(maxsize=16)
def measured_kernels(arch: str) -> dict[str, MeasuredKernels]:
    """All that was measured for an architecture, by `kernel_name`; empty where nothing was."""
    path = FOLDER / f"{arch}.json"
    if not arch or not path.is_file():
        return {}
    return {name: _sorted(rows) for name, rows in read_measured(path)["kernels"].items()}


def read_measured(path: str | os.PathLike[str]) -> dict[str, Any]:
    """A file's content, checked for being one of ours."""
    try:
        data = json.loads(Path(path).read_text())
    except (OSError, ValueError) as fault:
        raise FileFaultError(f"{path}: got {fault}; expected measured resources as JSON") from None
    if not isinstance(data, dict) or data.get("version") != VERSION:
        raise FileFaultError(
            f"{path}: got no measured resources of version {VERSION}; expected those; "
            "run workflows/measure_resources.py again"
        )
    if tuple(data.get("columns", ())) != COLUMNS or not isinstance(data.get("kernels"), dict):
        raise FileFaultError(f"{path}: got other columns; expected {', '.join(COLUMNS)}")
    return data


def _sorted(rows: list[list[int]]) -> MeasuredKernels:
    table = np.array(rows, dtype=np.int64).reshape(-1, len(COLUMNS))
    keys = np.zeros(len(table), np.int64)
    for column, bits in enumerate(_BITS.values()):
        keys = (keys << bits) | table[:, column]
    order = np.argsort(keys)
    shared, registers = (
        table[order, COLUMNS.index(name)].astype(np.int32) for name in ("shared_bytes", "registers")
    )
    return MeasuredKernels(keys[order], shared, registers)
