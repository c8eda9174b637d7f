"""Logs of PyTorch's AutoHeuristic: times that Inductor's autotuning measured.

A log is text, or text compressed by gzip: a line of JSON with the chip's properties and the names
of the features, then CSV with one timing per line, in milliseconds. It does not name the chip: the
file's name or its folder's does, as in `a100_mm.txt` or `NVIDIA_A100-SXM4-80GB/mm.txt`.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import time
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv

from torch_diode.files.file_errors import naming_file
from torch_diode.hardware.catalog import known, known_names, reported_names
from torch_diode.types import validation
from torch_diode.types.candidate import ATEN, Candidate, TritonGEMMConfig
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.dataset import Dataset
from torch_diode.types.errors import InvalidValueError
from torch_diode.types.grouping import group

MATMUL = "mm"
ATTENTION = "flex_attention"
_MAGIC = b"\x1f\x8b"
_MOST_BYTES = 1 << 30
_HEAD_BYTES = 1 << 16
_HEAD_NAMES = ("name", "device_capa", "numerical_features", "categorical_features")
_VENDOR = "extern_mm"
_CONFIG = re.compile(
    r"type=triton_BLOCK-M=(?P<block_m>\d+)_BLOCK-K=(?P<block_k>-?\d+)_BLOCK-N=(?P<block_n>\d+)"
    r"_numstages=(?P<num_stages>\d+)_numwarps=(?P<num_warps>\d+)"
)
_GROUP_M = 8
"""Inductor's configs for mm had no other when they were not in the choice's name."""
_NUMBERS = ("m", "k", "n", "mat1_stride_0", "mat1_stride_1", "mat2_stride_0", "mat2_stride_1")
_TEXTS = ("mat1_dtype", "mat2_dtype", "using_tf32")
_MOST_REPEATS = 2**15 - 1

Mask = npt.NDArray[np.bool_]


def decision_of(path: Path) -> str:
    """The decision that a file is a log of, by its first line; empty if it is no log."""
    try:
        with path.open("rb") as raw:
            head = json.loads(_stream(raw).readline(_HEAD_BYTES))
    except (OSError, EOFError, zlib.error, ValueError, RecursionError):
        return ""
    return str(head["name"]) if isinstance(head, dict) and set(head) >= set(_HEAD_NAMES) else ""


@dataclass(frozen=True)
class Log:
    """A log's timings with a column for each feature, and what is known of them all."""

    table: pa.Table
    hardware: str
    provenance: Mapping[str, tuple[str, ...]]

    def numbers(self, name: str) -> npt.NDArray[Any]:
        """A feature's numbers, or the times in milliseconds."""
        return np.asarray(self.table.column(name).to_numpy())

    def texts(self, name: str) -> npt.NDArray[Any]:
        """A feature's texts; dtypes without torch's prefix."""
        column = self.table.column(name).combine_chunks()
        names = [text.removeprefix("torch.") for text in column.dictionary.to_pylist()]
        return np.asarray(np.array(names)[column.indices.to_numpy()])

    def check_features(self, decision: str, names: Iterable[str]) -> None:
        """Raise where the log has not these features."""
        for name in names:
            if name not in self.table.column_names:
                raise InvalidValueError(
                    f"got no feature {name!r}; expected it in a log of {decision}"
                )


def read_autoheuristic(path: str | os.PathLike[str]) -> Dataset:
    """The timings of a log of matrix multiplications. A time of `inf` did not run; of timings made
    repeatedly, the median is kept."""
    with naming_file(path):
        log = read_log(path, MATMUL)
        return Dataset(merge_repeats(_matmuls(log)), log.provenance)


def read_log(path: str | os.PathLike[str], decision: str) -> Log:
    """A log of this decision."""
    file = Path(path)
    head, table = _parse(_content(file))
    if head["name"] != decision:
        raise InvalidValueError(f"got a log of {head['name']!r:.40}; expected {decision!r}")
    provenance = {
        "source": (f"PyTorch AutoHeuristic log {file.name}",),
        "collected": (time.strftime("%Y-%m-%d", time.gmtime(file.stat().st_mtime)),),
        "timed_by": ("Inductor's autotuning, with the launch",),
    }
    return Log(table, _hardware(file, head["device_capa"]), provenance)


def _stream(raw: Any) -> BinaryIO:
    is_packed = raw.peek(len(_MAGIC))[: len(_MAGIC)] == _MAGIC
    return gzip.GzipFile(fileobj=raw) if is_packed else raw  # type: ignore[return-value]


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as raw:
            data = _stream(raw).read(_MOST_BYTES + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as fault:
        raise InvalidValueError(f"not a whole gzip file: {fault}") from None
    if len(data) > _MOST_BYTES:
        raise InvalidValueError(f"got more than {_MOST_BYTES >> 30} GiB of text; expected a log")
    return data


def _parse(data: bytes) -> tuple[Mapping[str, Any], pa.Table]:
    """The first line, and the timings with a column for each feature."""
    first, _, rest = data.partition(b"\n")
    try:
        head: Any = json.loads(first)
    except (ValueError, RecursionError):
        head = None
    if not isinstance(head, dict) or not set(head) >= set(_HEAD_NAMES):
        raise InvalidValueError(
            "got no AutoHeuristic log; expected a first line of JSON with " + ", ".join(_HEAD_NAMES)
        )
    numbers, texts = (validation.sequence(name, head[name]) for name in _HEAD_NAMES[2:])
    text = pa.dictionary(pa.int32(), pa.string())
    kinds = {**dict.fromkeys(map(str, numbers), pa.int64()), **dict.fromkeys(map(str, texts), text)}
    kinds |= {"choice": text, "feedback": pa.float64()}
    options = pyarrow.csv.ConvertOptions(column_types=kinds, include_columns=list(kinds))
    try:
        table = pyarrow.csv.read_csv(pa.BufferReader(rest), convert_options=options)
    except (pa.ArrowException, KeyError) as fault:
        reason = (str(fault).splitlines() or [""])[0]
        raise InvalidValueError(f"got what is not a timing per line: {reason:.160}") from None
    if not table.num_rows or any(column.null_count for column in table.columns):
        raise InvalidValueError("got no timings, or one without all its values; is it cut short?")
    return head, table.unify_dictionaries().combine_chunks()


def _hardware(path: Path, capability: Any) -> str:
    """The chip of this compute capability that the file's or its folder's name names."""
    arch = "sm_" + "".join(map(str, validation.sequence("device_capa", capability)))
    chips = [name for name in known_names() if known(name).arch == arch]
    folder = path.resolve().parent.name.replace("_", " ")
    for chip in chips:
        if folder in reported_names(chip):
            return chip
    words = f"-{re.sub('[^a-z0-9]+', '-', path.name.lower())}"
    short = {chip: chip.partition("-")[2] for chip in chips}
    named = [chip for chip, name in short.items() if f"-{name}-" in words]
    if not named:
        expected = " or ".join(f"{name}_mm.txt" for name in short.values()) or "a known chip's"
        raise InvalidValueError(
            f"got timings of some chip of {arch:.20}, named neither in the file's name nor in its "
            f"folder's; expected a name such as {expected:.80}; rename the file"
        )
    return max(named, key=len)


def _matmuls(log: Log) -> pa.Table:
    """A dataset's columns, one row per line; matrices that are neither row-major nor column-major
    are left out."""
    log.check_features(MATMUL, (*_NUMBERS, *_TEXTS))
    m, k, n, *strides = (log.numbers(name) for name in _NUMBERS)
    plain_a, transposed_a = _orders(m, k, *strides[:2])
    plain_b, transposed_b = _orders(k, n, *strides[2:])
    dtype, other, tf32 = (log.texts(name) for name in _TEXTS)
    if (dtype != other).any():
        raise InvalidValueError("got operands of two dtypes; expected one")
    columns: dict[str, Any] = {
        "hardware": repeated(log.hardware, len(m)),
        "op": repeated(MATMUL, len(m)),
        "M": m,
        "N": n,
        "K": k,
        "dtype": pa.array(dtype).dictionary_encode(),
        "transpose_a": ~plain_a,
        "transpose_b": ~plain_b,
        "tf32": tf32 == "True",
        "bias": repeated("none", len(m)),
        **_candidates(log.table.column("choice").combine_chunks()),
        "time_us": log.numbers("feedback") * 1e3,
    }
    usable = (plain_a | transposed_a) & (plain_b | transposed_b)
    return pa.table(columns).filter(pa.array(usable)).combine_chunks()


def _orders(rows: Any, columns: Any, row_step: Any, column_step: Any) -> tuple[Mask, Mask]:
    """Masks of the row-major and of the column-major matrices."""
    plain = ((column_step == 1) | (columns == 1)) & ((row_step >= columns) | (rows == 1))
    transposed = ((row_step == 1) | (rows == 1)) & ((column_step >= rows) | (columns == 1))
    return plain, transposed


def repeated(text: str, count: int) -> pa.DictionaryArray:
    """A text column of one text."""
    return pa.DictionaryArray.from_arrays(np.zeros(count, np.int16), [text])


def _candidates(choices: pa.DictionaryArray) -> dict[str, Any]:
    known = Candidates.of(map(_candidate, choices.dictionary.to_pylist()))
    codes = choices.indices.to_numpy()
    template = pa.DictionaryArray.from_arrays(known.template[codes], list(known.templates))
    return {"template": template} | {name: field[codes] for name, field in known.fields.items()}


def _candidate(choice: str) -> Candidate:
    if choice == _VENDOR:
        return Candidate(ATEN)
    fields = config_fields(choice, f"{_VENDOR} or ")
    return Candidate("triton::mm", TritonGEMMConfig(**fields, group_m=_GROUP_M))


def config_fields(choice: str, others: str = "") -> dict[str, int]:
    """The config in a choice's name."""
    match = _CONFIG.fullmatch(choice)
    if match is None:
        raise InvalidValueError(
            f"got choice {choice!r:.90}; expected {others}type=triton_BLOCK-M=64_BLOCK-K=…"
        )
    return {name: int(text) for name, text in match.groupdict().items()}


def merge_repeats(rows: pa.Table) -> pa.Table:
    """One row for each problem and candidate, with the median of its times."""
    times = rows.column("time_us").to_numpy()
    if not (times > 0).all():
        raise InvalidValueError(
            f"got a time of {times[~(times > 0)][0] / 1e3} ms; expected above 0, or inf"
        )
    same = group(rows, [name for name in rows.column_names if name != "time_us"])
    order = np.lexsort((times, same.ids))
    ids, times = same.ids[order], times[order]
    # Equal times are one measurement that was logged again from torch's autotune cache.
    distinct = np.r_[True, (ids[1:] != ids[:-1]) | (times[1:] != times[:-1])]
    ids, times = ids[distinct], times[distinct]
    starts = np.searchsorted(ids, np.arange(len(same)))
    ran = np.bincount(ids, np.isfinite(times), minlength=len(same)).astype(int)
    last = np.maximum(ran - 1, 0)  # those that did not run come after it

    def quantile(quarters: int) -> npt.NDArray[np.float64]:
        low, high = quarters * last // 4, -(-quarters * last // 4)
        return np.asarray((times[starts + low] + times[starts + high]) / 2)

    with np.errstate(invalid="ignore"):
        spread = (quantile(3) - quantile(1)) / 2 / quantile(2)
    merged = {
        "time_us": pa.array(quantile(2), mask=ran == 0),
        "spread": pa.array(spread, mask=ran < 2),
        "repeats": np.minimum(np.maximum(ran, 1), _MOST_REPEATS),
        "status": pa.array(np.where(ran > 0, "ok", "failed")),
        "method": repeated("feedback", len(same)),
    }
    table = rows.drop_columns("time_us").take(pa.array(same.first))
    for name, values in merged.items():
        table = table.append_column(name, pa.array(values))
    return table
