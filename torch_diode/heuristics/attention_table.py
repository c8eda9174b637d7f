"""Flex attention's configs by table: by kind of kernel, dtype and head dimension, best first.

The form of a table that a person writes, as `kernel_options` are passed on among users, and of the
shipped ones, which were learned from timings.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from torch_diode.candidates.gpu.attention import KINDS, padded
from torch_diode.files.file_errors import naming_file
from torch_diode.files.header import check_header, header
from torch_diode.files.json import read_json
from torch_diode.hardware.catalog import normalise, stand_ins
from torch_diode.heuristics.base import digest
from torch_diode.heuristics.custom import CustomAnswer
from torch_diode.heuristics.questions import Attention
from torch_diode.model.registry import shipped_folders
from torch_diode.types import validation
from torch_diode.types.attention.shape import DTYPES
from torch_diode.types.candidate import KernelConfig
from torch_diode.types.hardware import Hardware

DECISION = "attention"
VERSION = 1
_FORM = "attention table"
_ROW = ("kind", "dtype", "head_dim", "configs")
_TOP = 3
"""Configs handed out for max-autotune."""
_SHORT = 16
"""Longer lists of Inductor's are those of its exhaustive search."""
_KEPT = 2

Rows = Mapping[tuple[str, str, int], tuple[KernelConfig, ...]]


class AttentionTable(CustomAnswer):
    """Answers with the row's configs that fit: the first one, or for max-autotune a few."""

    def __init__(self, rows: Rows, name: str = "attention table", hardware: str = "") -> None:
        super().__init__(DECISION, self.answer, name)
        self.portable = True
        self.rows = dict(rows)
        self.hardware = hardware
        """The chip the table is for; empty for any."""

    def answer(self, question: Any) -> list[KernelConfig] | None:
        """The best configs that are not known to exceed the chip; None without a row."""
        if self.hardware not in ("", question.hardware.name):
            return None
        usable = [each for each in self.row(question) if question.fits(each) is not False]
        return usable[: _TOP if len(question.default) > 1 else 1] or None

    def row(self, question: Attention) -> tuple[KernelConfig, ...]:
        """All configs for a question, best first; a row of another two-byte dtype serves too."""
        dtypes = (question.dtype, "bfloat16" if question.dtype == "float16" else question.dtype)
        keys = ((question.asks, dtype, padded(question.head_dim)) for dtype in dtypes)
        return next((self.rows[key] for key in keys if key in self.rows), ())

    def shortlist(self, question: Attention) -> tuple[KernelConfig, ...] | None:
        """Inductor's list for max-autotune, without the configs that the table has at a low
        place: what it has first, what it does not have, and Inductor's own choice stay."""
        row = [each for each in self.row(question) if question.fits(each) is not False]
        if not row or not 1 < len(question.default) <= _SHORT:
            return None
        kept = [each for each in question.default[:-1] if each not in row[_KEPT:]]
        return tuple(dict.fromkeys([*row[:_KEPT], *kept, question.default[-1]]))

    def fingerprint(self) -> str:
        """Digest of the rows."""
        return digest(DECISION, self.hardware, json.dumps(self.to_dict(), sort_keys=True))

    def to_dict(self) -> dict[str, Any]:
        """The file's content."""
        rows = [
            dict(zip(_ROW, (*key, [_to_dict(each) for each in configs]), strict=True))
            for key, configs in sorted(self.rows.items())
        ]
        return {**header(_FORM, VERSION), "hardware": self.hardware, "rows": rows}

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> AttentionTable:
        """A table from its JSON file."""
        with naming_file(path):
            data = read_json(path)
            check_header(data, _FORM, VERSION)
            rows = dict(_row(row) for row in validation.sequence("rows", data.get("rows")))
            hardware = data.get("hardware")
            return cls(rows, f"{_FORM} {Path(path).stem}", normalise(hardware) if hardware else "")


def _to_dict(config: KernelConfig) -> dict[str, int]:
    return {**dict(config.blocks), "num_stages": config.num_stages, "num_warps": config.num_warps}


def _row(data: Any) -> tuple[tuple[str, str, int], tuple[KernelConfig, ...]]:
    validation.known_keys("row", data, _ROW, required=_ROW)
    kind = data["kind"]
    validation.one_of("row", "kind", kind, tuple(KINDS))
    validation.one_of("row", "dtype", data["dtype"], DTYPES)
    head_dim = validation.whole_number("row", "head_dim", data["head_dim"], low=1)
    configs = validation.sequence("configs", data["configs"])
    return (kind, data["dtype"], padded(head_dim)), tuple(_configs(kind, configs))


def _configs(kind: str, configs: Iterable[Any]) -> Iterable[KernelConfig]:
    """Configs with the names of their blocks in either case: `BLOCK_M` as in `kernel_options`."""
    for given in configs:
        fields = {str(n).lower(): size for n, size in validation.mapping("config", given).items()}
        names = (*KINDS[kind], "num_stages", "num_warps")
        validation.known_keys("config", fields, names, required=names)
        sizes = [validation.whole_number("config", n, fields[n], low=1) for n in names]
        blocks = tuple(zip(KINDS[kind], sizes, strict=False))
        yield KernelConfig(blocks, sizes[-2], sizes[-1])


@lru_cache(maxsize=8)
def shipped_table(hardware: Hardware) -> AttentionTable | None:
    """The table that came along for this chip, or one it stands in for."""
    folders = [folder / DECISION for folder in shipped_folders()]
    paths = {path.parent.name: path for f in folders for path in f.glob("*/forward.json")}
    for name in stand_ins(hardware, paths):
        return AttentionTable.load(paths[name])
    return None
