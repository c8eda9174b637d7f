"""Timings of flex attention: read PyTorch's AutoHeuristic logs and our files, convert and merge."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from torch_diode.files import parquet
from torch_diode.files.attention.logs import read_attention_log
from torch_diode.files.autoheuristic import ATTENTION, decision_of
from torch_diode.files.datasets import is_log
from torch_diode.files.file_errors import naming_file
from torch_diode.hardware import normalise
from torch_diode.types.attention.dataset import COLUMNS, AttentionDataset
from torch_diode.types.errors import EmptySelectionError, FileFaultError

_KIND = "attention dataset"


def holds_attention(source: object) -> bool:
    """True for a log of flex attention, and a Parquet file of its timings."""
    if isinstance(source, AttentionDataset):
        return True
    if not isinstance(source, (str, os.PathLike)):
        return False
    path = Path(source)
    return decision_of(path) == ATTENTION if is_log(path) else parquet.is_of_kind(path, _KIND)


def read_attention(source: object) -> AttentionDataset:
    """The timings in such a file."""
    if isinstance(source, AttentionDataset):
        return source
    if not isinstance(source, (str, os.PathLike)) or not holds_attention(source):
        raise FileFaultError(
            f"{source!s:.200}: got no timings of flex attention; expected the same as in the "
            "other files: a log of AutoHeuristic's, or what convert made of one"
        )
    path = Path(source)
    if is_log(path):
        return read_attention_log(path)
    with naming_file(path):
        return AttentionDataset(*parquet.read_columns(path, _KIND, COLUMNS))


def convert_attention(
    inputs: Sequence[object],
    output: Path,
    form: str = "parquet",
    hardware: str | None = None,
    collected: str | None = None,
    overwrite: bool = False,
) -> AttentionDataset:
    """Merge timings of attention and write them; the result is what was written."""
    if form != "parquet":
        raise FileFaultError(f"{output}: got form {form}; expected parquet for attention's timings")
    merged = AttentionDataset.merge([read_attention(path) for path in inputs])
    if collected is not None:
        provenance = {**merged.provenance, "collected": (collected,)}
        merged = AttentionDataset(merged.table, provenance)
    if hardware:
        mask = np.array(merged.texts("hardware")) == normalise(hardware)
        if not mask.any():
            raise EmptySelectionError(f"{output}: got no timings of {hardware}; expected some")
        merged = AttentionDataset(merged.table.filter(pa.array(mask)), merged.provenance)
    parquet.write_columns(output, merged.table, merged.provenance, _KIND, COLUMNS, overwrite)
    return merged
