"""The problem: one flex attention to run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from torch_diode.types import validation
from torch_diode.types.validation import JSONText

KINDS = ("forward", "backward", "decode")
DTYPES = ("bfloat16", "float16", "float32")
LAYOUTS = ("bhmd", "bmhd")
"""Order of batch, heads, rows and head dimension in memory."""
SIZES = ("B", "H", "M", "N", "D")


@dataclass(frozen=True, order=True)
class AttentionShape(JSONText):
    """One flex attention to run: batch, heads, queries M, keys N, head dimension D.

    `score_ops` and `score_reads` are the nodes of the function that modifies scores, and how many
    of its arguments it uses: what Inductor logs of it.
    """

    B: int
    H: int
    M: int
    N: int
    D: int
    dtype: str = "bfloat16"
    kind: str = "forward"
    layout: str = "bhmd"
    score_ops: int = 0
    score_reads: int = 0

    def __post_init__(self) -> None:
        for name in SIZES:
            value = validation.whole_number("AttentionShape", name, getattr(self, name), low=1)
            object.__setattr__(self, name, value)
        validation.one_of("AttentionShape", "dtype", self.dtype, DTYPES)
        validation.one_of("AttentionShape", "kind", self.kind, KINDS)
        validation.one_of("AttentionShape", "layout", self.layout, LAYOUTS)

    @property
    def key(self) -> str:
        """Short and exact: `forward:32x8x2048x2048x128:float16:bhmd` (B, H, M, N, D)."""
        sizes = "x".join(str(getattr(self, name)) for name in SIZES)
        score = f":score={self.score_ops}/{self.score_reads}" if self.score_ops else ""
        return f"{self.kind}:{sizes}:{self.dtype}:{self.layout}{score}"

    def to_dict(self) -> dict[str, Any]:
        """The JSON form: all fields."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> AttentionShape:
        """Parse the JSON form; fields with a default may be left out, unknown ones are refused."""
        names = tuple(each.name for each in fields(cls))
        validation.known_keys("problem", data, names, required=SIZES)
        return cls(**data)

    def __str__(self) -> str:
        return self.key
