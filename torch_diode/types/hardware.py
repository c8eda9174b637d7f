"""The hardware: a normalised name and the chip's properties."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from torch_diode.types import validation
from torch_diode.types.validation import SLUG

KINDS = ("cuda", "rocm", "xpu", "cpu")


@dataclass(frozen=True)
class Hardware:
    """A chip's properties, for the candidate space and the features; 0 means unknown.

    `arch` is the compiler's name for the instruction set (`sm_90`, `gfx942`, `x86_64`): chips that
    share it run the same kernels.
    """

    name: str
    kind: str
    arch: str = ""
    units: int = 0
    """Streaming multiprocessors, compute units, Xe cores or CPU cores."""
    warp_size: int = 0
    shared_memory_per_block: int = 0
    shared_memory_per_unit: int = 0
    registers_per_unit: int = 0
    threads_per_unit: int = 0
    threads: int = 0
    """Threads torch runs a CPU kernel with: part of the hardware, and 0 on a GPU."""
    instruction_sets: tuple[str, ...] = ()
    """A CPU's instruction sets for matrix kernels, such as `avx2` or `amx_bf16`."""
    l1_bytes: int = 0
    """Data cache of one CPU core."""
    l2_bytes: int = 0
    """On a GPU the whole L2, on a CPU that of one core."""
    l3_bytes: int = 0
    """Last-level cache shared by CPU cores."""
    memory_bytes: int = 0
    memory_gbps: float = 0.0
    """Peak memory bandwidth in GB/s (10^9 bytes)."""
    clock_mhz: int = 0
    tflops: tuple[tuple[str, float], ...] = ()
    """Peak dense matrix rate by dtype, without sparsity, of a CPU that of one core; `tf32` is a
    dtype of its own here."""

    def __post_init__(self) -> None:
        validation.name(
            "Hardware", "name", self.name, SLUG, "a normalised name such as nvidia-h200"
        )
        validation.one_of("Hardware", "kind", self.kind, KINDS)
        for field in fields(self):
            if field.type == "int":
                value = getattr(self, field.name)
                validation.whole_number("Hardware", field.name, value, low=0, high=2**48)
        for rate in (("memory_gbps", self.memory_gbps), *self.tflops):
            validation.fraction("Hardware", *rate, expected="a rate as a number, 0 or more")

    def __hash__(self) -> int:
        """By name alone, for speed: a decision has ten lookups by chip."""
        return hash(self.name)

    @property
    def label(self) -> str:
        """The name, of a CPU with its threads."""
        return f"{self.name} with {self.threads} threads" if self.threads else self.name

    def peak_tflops(self, dtype: str) -> float:
        """Peak matrix rate for a precision in TFLOP/s, 0 where it is unknown."""
        return dict(self.tflops).get(dtype, 0.0)

    def to_dict(self) -> dict[str, Any]:
        """The JSON form, without unknown properties."""
        data = {name: value for name, value in asdict(self).items() if value}
        if self.instruction_sets:
            data["instruction_sets"] = list(self.instruction_sets)
        if self.tflops:
            data["tflops"] = dict(self.tflops)
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Hardware:
        """Parse the JSON form; an unknown field is refused."""
        validation.known_keys(
            "hardware", data, tuple(f.name for f in fields(cls)), ("name", "kind")
        )
        tflops = data.get("tflops", {})
        validation.instance("hardware", "tflops", tflops, dict)
        sets = data.get("instruction_sets", [])
        validation.instance("hardware", "instruction_sets", sets, list)
        return cls(
            **{
                **data,
                "tflops": tuple(sorted(tflops.items())),
                "instruction_sets": tuple(map(str, sets)),
            }
        )
