"""The candidate: one way to run a problem, and the config its template may take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

from torch_diode.types import validation
from torch_diode.types.errors import InvalidValueError
from torch_diode.types.validation import JSONText

ATEN = "aten"
ONEDNN = "onednn"
ATEN_F32 = "aten_f32"
ONEDNN_F32 = "onednn_f32"
CONVERTING = (ATEN_F32, ONEDNN_F32)
"""Libraries on operands converted to float32, for a dtype the CPU has no instructions for."""
ONEDNN_PACKED = "onednn_packed"
MKL_PACKED = "mkl_packed"
PACKED = (ONEDNN_PACKED, MKL_PACKED)
"""Libraries with a constant weight in their own layout, for frozen graphs."""
LIBRARIES = (ATEN, ONEDNN, *CONVERTING, *PACKED)
CPP_GEMM = "cpp::gemm"
CPP_ATTENTION = "cpp::attention"
DECOMPOSE_K = "decompose_k"
TMA_TEMPLATES = frozenset({"triton::mm_persistent_tma"})
TRITON_TEMPLATES = ("triton::mm", "triton::bmm", *sorted(TMA_TEMPLATES))
TEMPLATE_FORM = r"[a-z][a-z0-9_]*(::[a-z0-9_]+)?"
STATUSES = ("ok", "out_of_resources", "failed", "wrong")
"""Outcomes of timing a candidate: a time, or why there is none."""


_LIMITS = dict.fromkeys(("block_m", "block_n", "block_k"), (1, 4096))
_LIMITS |= {"num_warps": (1, 64), "group_m": (1, 1024), "num_stages": (0, 32)}
_LIMITS |= {"waves_per_eu": (0, 16), "matrix_instr_nonkdim": (0, 64), "kpack": (0, 8)}


_EARLIER = dict.fromkeys(
    ("name", "grid", "EVEN_K", "ALLOW_TF32", "USE_FAST_ACCUM", "ACC_TYPE"),
    "none, since it follows from the problem",
)


@dataclass(frozen=True, order=True)
class TritonGEMMConfig(JSONText):
    """The meta-parameters of a Triton matmul template.

    Arguments that follow from the problem (EVEN_K, ALLOW_TF32, ACC_TYPE, the grid) are derived when
    a kernel is generated. The last three are AMD's; 0 leaves them to the compiler.
    """

    block_m: int
    block_n: int
    block_k: int
    group_m: int = 8
    num_stages: int = 2
    num_warps: int = 4
    waves_per_eu: int = 0
    matrix_instr_nonkdim: int = 0
    kpack: int = 0

    def __new__(cls, *_: object, **given: object) -> TritonGEMMConfig:
        """Refuse the arguments of release 0.1.1."""
        validation.no_earlier_argument("TritonGEMMConfig", given, _EARLIER)
        return super().__new__(cls)

    def __post_init__(self) -> None:
        for field, (low, high) in _LIMITS.items():
            powers = field.startswith("block_") or field == "num_warps"
            check = validation.power_of_two if powers else validation.whole_number
            number = check("TritonGEMMConfig", field, getattr(self, field), low=low, high=high)
            object.__setattr__(self, field, number)

    def to_dict(self) -> dict[str, int]:
        """The JSON form; AMD's fields only where they are set."""
        return {
            f: v for f in CONFIG_FIELDS if (v := getattr(self, f)) or f not in _SILENT_WHEN_ZERO
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TritonGEMMConfig:
        """Parse the JSON form; an unknown field is refused."""
        blocks = ("block_m", "block_n", "block_k")
        validation.known_keys("TritonGEMMConfig", data, CONFIG_FIELDS, required=blocks)
        return cls(**data)

    def __str__(self) -> str:
        text = f"{self.block_m}x{self.block_n}x{self.block_k} g{self.group_m}"
        text += f" s{self.num_stages} w{self.num_warps}"
        extra = [f"{f}={getattr(self, f)}" for f in _SILENT_WHEN_ZERO if getattr(self, f)]
        return " ".join([text, *extra])


CONFIG_FIELDS = tuple(f.name for f in fields(TritonGEMMConfig))


@dataclass(frozen=True, order=True)
class CppGEMMConfig(JSONText):
    """The register blocking of the micro-kernel in Inductor's C++ template for CPUs.

    The kernel holds `block_m` x `block_n` outputs in registers and advances along K by `block_k`.
    Cache blocking and threads are derived from the problem when a kernel is generated.
    """

    block_m: int
    block_n: int
    block_k: int = 1

    def __post_init__(self) -> None:
        for field in CPP_FIELDS:
            value = getattr(self, field)
            number = validation.whole_number("CppGEMMConfig", field, value, low=1, high=256)
            object.__setattr__(self, field, number)

    def to_dict(self) -> dict[str, int]:
        """The JSON form."""
        return {field: getattr(self, field) for field in CPP_FIELDS}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> CppGEMMConfig:
        """Parse the JSON form; an unknown field is refused."""
        validation.known_keys("CppGEMMConfig", data, CPP_FIELDS, required=CPP_FIELDS[:2])
        return cls(**data)

    def __str__(self) -> str:
        return f"{self.block_m}x{self.block_n}x{self.block_k}"


CPP_FIELDS = ("block_m", "block_n", "block_k")
KEY_FIELDS = (
    ("block_m", "block_n", "block_k", "group_m", "num_stages"),
    ("split_k", "num_warps", "waves_per_eu", "matrix_instr_nonkdim", "kpack"),
)
"""The fields of a candidate's two keys."""
_FIELD_BITS = {"block_m": 13, "block_n": 13, "block_k": 13, "group_m": 11, "num_stages": 6}
_FIELD_BITS |= {"num_warps": 7, "waves_per_eu": 5, "matrix_instr_nonkdim": 7, "kpack": 4}
_FIELD_BITS |= {"split_k": 17}
"""Bits that the greatest value of a field takes."""
Key = TypeVar("Key")


def pack(fields: Mapping[str, Any], names: Iterable[str], zero: Key) -> Key:
    """Fields packed into one integer, or into one array of integers where `zero` is an array of
    64-bit zeros: far faster to compare and to sort than field by field."""
    key: Any = zero
    for name in names:
        key = key << _FIELD_BITS[name] | fields[name]
    packed: Key = key
    return packed


_SILENT_WHEN_ZERO = ("waves_per_eu", "matrix_instr_nonkdim", "kpack")


@dataclass(frozen=True)
class Candidate(JSONText):
    """A template and its config, or a library's kernel.

    `aten` is whatever torch's own library call runs; `decompose_k` splits K into `split_k` parts
    and has no Triton config of its own.
    """

    template: str
    config: TritonGEMMConfig | CppGEMMConfig | None = None
    split_k: int = 1

    def __post_init__(self) -> None:
        expected = "a template's name, such as aten, triton::mm or triton::mm_persistent_tma"
        validation.name("Candidate", "template", self.template, TEMPLATE_FORM, expected)
        split = validation.whole_number("Candidate", "split_k", self.split_k, low=1, high=65536)
        object.__setattr__(self, "split_k", split)
        self._check_config()
        if (self.template == DECOMPOSE_K) != (self.split_k > 1):
            expected = "2 or more" if self.template == DECOMPOSE_K else "1"
            validation.refuse("Candidate", "split_k", split, f"{expected} for {self.template}")

    def _check_config(self) -> None:
        """Check that the config is of the class the template takes."""
        config, expects = self.config, config_class(self.template)
        if config is not None and not isinstance(config, expects):
            validation.refuse("Candidate", "config", config, f"a {expects.__name__} or None")
        if self.template.startswith(("triton::", "cpp::")) and config is None:
            validation.refuse(
                "Candidate", "config", None, f"a {expects.__name__} for {self.template}"
            )
        if self.template in (*LIBRARIES, DECOMPOSE_K) and config is not None:
            validation.refuse("Candidate", "config", str(config), f"None for {self.template}")

    @property
    def triton(self) -> TritonGEMMConfig | None:
        """The config of a Triton template, None for any other candidate."""
        return self.config if isinstance(self.config, TritonGEMMConfig) else None

    @property
    def keys(self) -> tuple[int, int]:
        """Two integers that stand for the config and `split_k`; the template is not included."""
        config = {**dict.fromkeys(CONFIG_FIELDS, 0), **(vars(self.config) if self.config else {})}
        first, second = (pack({**config, "split_k": self.split_k}, f, 0) for f in KEY_FIELDS)
        return first, second

    def to_dict(self) -> dict[str, Any]:
        """The flat form of `rank` and the files: template, then the config's fields."""
        data: dict[str, Any] = {"template": self.template}
        if self.config is not None:
            data |= self.config.to_dict()
        if self.split_k != 1:
            data["split_k"] = self.split_k
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Candidate:
        """Parse the flat form."""
        known = ("template", *CONFIG_FIELDS, "split_k")
        validation.known_keys("candidate", data, known, required=("template",))
        config = {f: data[f] for f in CONFIG_FIELDS if f in data}
        template = data["template"]
        parsed = config_class(str(template)).from_dict(config) if config else None
        return cls(template, parsed, data.get("split_k", 1))

    def __str__(self) -> str:
        if self.config is not None:
            return f"{self.template} {self.config}"
        return f"{self.template} split_k={self.split_k}" if self.split_k > 1 else self.template


def config_class(template: str) -> type[TritonGEMMConfig] | type[CppGEMMConfig]:
    """The class of a template's config."""
    return CppGEMMConfig if template.startswith("cpp::") else TritonGEMMConfig


def config_of(template: str, fields: Mapping[str, int]) -> TritonGEMMConfig | CppGEMMConfig | None:
    """The config in a candidate's fields as arrays and files hold them: 0 where it has none."""
    if not fields["block_m"]:
        return None
    if config_class(template) is CppGEMMConfig:
        return CppGEMMConfig(*(fields[name] for name in CPP_FIELDS))
    return TritonGEMMConfig(**{name: fields[name] for name in CONFIG_FIELDS})


@dataclass(frozen=True)
class KernelConfig:
    """Block sizes by Inductor's names, stages and warps: of a convolution's, an attention's or any
    other template's kernel."""

    blocks: tuple[tuple[str, int], ...]
    num_stages: int
    num_warps: int

    def __getitem__(self, name: str) -> int:
        return dict(self.blocks)[name]

    def changed(self, **given: int) -> KernelConfig:
        """A copy with other values: `num_warps=8`, or blocks by name: `BLOCK_M=64`."""
        blocks = dict(self.blocks)
        unknown = given.keys() - blocks.keys() - {"num_stages", "num_warps"}
        if unknown:
            raise InvalidValueError(
                f"KernelConfig: got {', '.join(sorted(unknown))}; expected num_stages, num_warps "
                f"or one of {', '.join(blocks)}"
            )
        return replace(
            self,
            blocks=tuple((name, given.get(name, size)) for name, size in self.blocks),
            num_stages=given.get("num_stages", self.num_stages),
            num_warps=given.get("num_warps", self.num_warps),
        )

    @property
    def sizes(self) -> tuple[int, ...]:
        """The blocks without their names, then stages and warps."""
        return (*(size for _, size in self.blocks), self.num_stages, self.num_warps)

    def is_within(self, other: KernelConfig) -> bool:
        """True if no block is larger than the other's, and there are no more stages."""
        mine, most = self.sizes[:-1], other.sizes[:-1]
        return all(size <= limit for size, limit in zip(mine, most, strict=True))

    def __str__(self) -> str:
        sizes = "x".join(str(size) for _, size in self.blocks)
        return f"{sizes} stages={self.num_stages} warps={self.num_warps}"
