"""Resources of compiled kernels: one JSON file per architecture, in `measurements/`.

`workflows/measure_resources.py` writes the files by compiling Inductor's templates for a named
architecture, without a GPU. Each kernel has a row with its config, the shared memory per block, the
registers and spilled bytes per thread; shared memory of -1 means that the compiler rejects it.
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

from torch_diode.types.candidate import pack
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.errors import FileFaultError
from torch_diode.types.problem import MMShape

VERSION = 1
_KEY_FIELDS = ("block_m", "block_n", "block_k", "num_stages", "num_warps")
COLUMNS = (*_KEY_FIELDS, "shared_bytes", "registers", "spilled_bytes")
FOLDER = Path(__file__).parent / "measurements"

Keys = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class MeasuredKernels:
    """Measured configs of one template, precision and layout, sorted by key."""

    keys: Keys
    shared_bytes: npt.NDArray[np.int32]
    registers: npt.NDArray[np.int32]

    def find(self, keys: Keys) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.intp]]:
        """Mask of the keys that have a row, and the row numbers (arbitrary for the others)."""
        if not len(self.keys):
            return np.zeros(len(keys), bool), np.zeros(len(keys), np.intp)
        rows = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return self.keys[rows] == keys, rows


def kernel_name(template: str, problem: MMShape) -> str:
    """Name of a group of rows. float16 shares the rows of bfloat16, whose needs are the same."""
    precision = "bfloat16" if problem.precision == "float16" else problem.precision
    return f"{template}/{precision}/{problem.layout}"


def config_keys(candidates: Candidates) -> Keys:
    """Fields of each config in one integer; without `group_m`, which changes no resources."""
    return pack(candidates.fields, _KEY_FIELDS, np.zeros(len(candidates), np.int64))


@lru_cache(maxsize=16)
def measured_kernels(arch: str) -> dict[str, MeasuredKernels]:
    """All measurements of an architecture by `kernel_name`; empty if there are none."""
    path = FOLDER / f"{arch}.json"
    if not arch or not path.is_file():
        return {}
    return {name: _sorted(rows) for name, rows in read_measured(path)["kernels"].items()}


def read_measured(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read and validate a file of measured resources."""
    data = read_version(path, VERSION, "measured resources", "workflows/measure_resources.py")
    if tuple(data.get("columns", ())) != COLUMNS or not isinstance(data.get("kernels"), dict):
        raise FileFaultError(f"{path}: got other columns; expected {', '.join(COLUMNS)}")
    return data


def read_version(
    path: str | os.PathLike[str], version: int, content: str, script: str
) -> dict[str, Any]:
    """Read a JSON file of measurements of this version, which the script writes."""
    try:
        data = json.loads(Path(path).read_text())
    except (OSError, ValueError) as fault:
        raise FileFaultError(f"{path}: got {fault}; expected {content} as JSON") from None
    if not isinstance(data, dict) or data.get("version") != version:
        raise FileFaultError(
            f"{path}: got something else; expected {content} of version {version}; "
            f"run {script} again"
        )
    return data


def _sorted(rows: list[list[int]]) -> MeasuredKernels:
    table = np.array(rows, dtype=np.int64).reshape(-1, len(COLUMNS))
    fields = dict(zip(COLUMNS, table.T, strict=True))
    keys = pack(fields, _KEY_FIELDS, np.zeros(len(table), np.int64))
    order = np.argsort(keys)
    shared, registers = (
        fields[name][order].astype(np.int32) for name in ("shared_bytes", "registers")
    )
    return MeasuredKernels(keys[order], shared, registers)
