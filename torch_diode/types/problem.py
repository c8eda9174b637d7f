"""The problem: one matrix multiplication to run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from torch_diode.types import validation
from torch_diode.types.errors import InvalidValueError
from torch_diode.types.validation import JSONText

OPS = ("mm", "addmm", "bmm", "baddbmm")
BATCHED = frozenset({"bmm", "baddbmm"})
BIASES = ("none", "vector", "matrix")
LAYOUTS = ("nn", "nt", "tn", "tt")
"""Layouts of A and B: t for transposed."""
_DEFAULT_BIAS = {"mm": "none", "bmm": "none", "addmm": "vector", "baddbmm": "matrix"}

DTYPES = (
    "bfloat16",
    "float16",
    "float32",
    "float64",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "int8",
    "int32",
)
DTYPE_BYTES = {
    name: 2 if name.endswith("16") else 8 if name == "float64" else 4 if name.endswith("32") else 1
    for name in DTYPES
}

_KEY = re.compile(
    r"(?P<op>[a-z]+):(?P<sizes>\d{1,10}(?:x\d{1,10}){2,3}):(?P<dtype>[a-z0-9_]+):(?P<layout>[nt]{2})"
    r"(?P<tf32>:tf32)?(?::out=(?P<out_dtype>[a-z0-9_]+))?(?::bias=(?P<bias>[a-z]+))?"
)


@dataclass(frozen=True, order=True)
class MMShape(JSONText):
    """One operation to run: op, sizes, dtypes and layout.

    `transpose_a`: A is stored as the transpose of a row-major matrix (column-major); `transpose_b`:
    the same of B. `x @ w.T` with a row-major `w` has `transpose_b=True`.
    `bias`: what addmm and baddbmm add, a `vector` along N or a full `matrix`.
    `tf32`: float32 products may be computed in TF32, which makes it a different problem.
    """

    op: str
    M: int
    N: int
    K: int
    B: int = 1
    dtype: str = "bfloat16"
    out_dtype: str = ""
    transpose_a: bool = False
    transpose_b: bool = False
    tf32: bool = False
    bias: str = ""

    def __post_init__(self) -> None:
        put = object.__setattr__
        validation.one_of("MMShape", "op", self.op, OPS)
        for size in ("M", "N", "K", "B"):
            value = getattr(self, size)
            put(self, size, validation.whole_number("MMShape", size, value, low=1))
        validation.one_of("MMShape", "dtype", self.dtype, DTYPES)
        put(self, "out_dtype", self.out_dtype or self.dtype)
        validation.one_of("MMShape", "out_dtype", self.out_dtype, DTYPES)
        for field in ("transpose_a", "transpose_b", "tf32"):
            put(self, field, validation.flag("MMShape", field, getattr(self, field)))
        put(self, "bias", self.bias or _DEFAULT_BIAS[self.op])
        validation.one_of("MMShape", "bias", self.bias, BIASES)
        self._check_fields_agree()

    def _check_fields_agree(self) -> None:
        if self.op not in BATCHED and self.B != 1:
            validation.refuse("MMShape", "B", self.B, f"1 for {self.op}", "use bmm for a batch")
        if (self.bias == "none") != (_DEFAULT_BIAS[self.op] == "none"):
            expected = "none" if _DEFAULT_BIAS[self.op] == "none" else "vector or matrix"
            validation.refuse("MMShape", "bias", self.bias, f"{expected} for {self.op}")
        if self.tf32 and self.dtype != "float32":
            validation.refuse("MMShape", "tf32", True, f"false for {self.dtype}")

    @property
    def layout(self) -> str:
        """BLAS's two letters: `n` for row-major, `t` for transposed, A first."""
        return "nt"[self.transpose_a] + "nt"[self.transpose_b]

    @property
    def precision(self) -> str:
        """The arithmetic of the products: `tf32` where allowed, otherwise the dtype."""
        return "tf32" if self.tf32 else self.dtype

    @property
    def kind(self) -> str:
        """`op/precision`: the unit in which models state their coverage."""
        return f"{self.op}/{self.precision}"

    @property
    def flops(self) -> int:
        """Multiply-adds counted as two, the bias not counted."""
        return 2 * self.B * self.M * self.N * self.K

    @property
    def bytes_moved(self) -> int:
        """The least memory traffic: inputs read once, output written once."""
        inputs = (self.M * self.K + self.K * self.N) * DTYPE_BYTES[self.dtype]
        bias = {"none": 0, "vector": self.N, "matrix": self.M * self.N}[self.bias]
        return self.B * (inputs + (self.M * self.N + bias) * DTYPE_BYTES[self.out_dtype])

    @property
    def key(self) -> str:
        """Short and exact, for tables and logs: `mm:512x4096x4096:bfloat16:nt` (M x N x K)."""
        sizes = [self.M, self.N, self.K]
        if self.op in BATCHED:
            sizes.insert(0, self.B)
        text = f"{self.op}:{'x'.join(map(str, sizes))}:{self.dtype}:{self.layout}"
        if self.tf32:
            text += ":tf32"
        if self.out_dtype != self.dtype:
            text += f":out={self.out_dtype}"
        if self.bias != _DEFAULT_BIAS[self.op]:
            text += f":bias={self.bias}"
        return text

    @classmethod
    def from_key(cls, key: str) -> MMShape:
        """The problem a `key` names."""
        match = _KEY.fullmatch(key) if isinstance(key, str) else None
        if match is None:
            raise InvalidValueError(
                f"problem key: got {key!r:.90}; expected op:MxNxK:dtype:layout, such as "
                "mm:512x4096x4096:bfloat16:nt or bmm:8x128x128x64:float16:nn (batch first)"
            )
        op, sizes = match["op"], [int(size) for size in match["sizes"].split("x")]
        validation.one_of("MMShape", "op", op, OPS)
        if len(sizes) != (4 if op in BATCHED else 3):
            form = "BxMxNxK" if op in BATCHED else "MxNxK"
            raise InvalidValueError(f"problem key: got {key!r:.90}; expected sizes {form} for {op}")
        batch = sizes.pop(0) if op in BATCHED else 1
        a, b = (letter == "t" for letter in match["layout"])
        m, n, k = sizes
        dtype, out_dtype, bias = match["dtype"], match["out_dtype"] or "", match["bias"] or ""
        return cls(op, m, n, k, batch, dtype, out_dtype, a, b, match["tf32"] is not None, bias)

    def to_dict(self) -> dict[str, Any]:
        """The JSON form: all fields, in the order op, B, M, N, K, then the rest."""
        return {field: getattr(self, field) for field in PROBLEM_FIELDS}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> MMShape:
        """Parse the JSON form; fields with a default may be left out, unknown ones are refused."""
        validation.known_keys("problem", data, PROBLEM_FIELDS, required=("op", "M", "N", "K"))
        return cls(**data)

    def __str__(self) -> str:
        return self.key


_FIRST = ("op", "B", "M", "N", "K")
PROBLEM_FIELDS = (*_FIRST, *(f.name for f in fields(MMShape) if f.name not in _FIRST))
