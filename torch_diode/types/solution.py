"""The solution: configs chosen beforehand, to compare a model's choice with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch_diode.types import validation
from torch_diode.types.candidate import CONFIG_FIELDS, TritonGEMMConfig
from torch_diode.types.errors import InvalidValueError
from torch_diode.types.problem import OPS


@dataclass(frozen=True)
class SolutionConfig:
    """A config or a part of one, and the problem it is for, if any. Missing fields match any value:
    a file may give blocks without stages and warps."""

    fields: tuple[tuple[str, int], ...]
    op: str | None = None
    sizes: tuple[int, int, int] | None = None

    def __post_init__(self) -> None:
        named = dict(self.fields)
        validation.known_keys(
            "solution config", named, CONFIG_FIELDS, ("block_m", "block_n", "block_k")
        )
        TritonGEMMConfig(**named)
        if self.op is not None:
            validation.one_of("solution config", "op", self.op, OPS)
        for size in self.sizes or ():
            validation.whole_number("solution config", "M, N, K", size, low=1)


@dataclass(frozen=True)
class Solution:
    """A named list of solution configs, in the order the file has them."""

    configs: tuple[SolutionConfig, ...]
    name: str = ""

    def __post_init__(self) -> None:
        if not self.configs:
            expected = "configs, config, or an op with a config list"
            raise InvalidValueError(
                f"solution: got no config; expected at least one, as {expected}"
            )
        if not isinstance(self.name, str):
            validation.refuse("solution", "name", self.name, "a text")

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Solution:
        """Parse any of the three forms: `configs` per problem, one `config` list, or one per op.

        Other keys are those of other tools and passed over; a `default` that stands alone is a list
        for all ops.
        """
        validation.mapping("solution", data)
        if "configs" in data:
            configs = [_per_problem(item) for item in _configs(data["configs"])]
        else:
            configs = [
                SolutionConfig(_fields(item), op=op)
                for op, part in _parts(data)
                for item in _configs(part["config"])
            ]
        return cls(tuple(configs), data.get("name", ""))


def _parts(data: Mapping[str, Any]) -> list[tuple[str | None, Mapping[str, Any]]]:
    """The parts that have a `config` list, each with the op it is for, None for all."""
    if "config" in data:
        return [(None, data)]
    parts = [(op, _with_config(op, data[op])) for op in OPS if op in data]
    if parts or "default" not in data:
        return [*parts]
    return [(None, _with_config("default", data["default"]))]


def _with_config(name: str, part: Any) -> Mapping[str, Any]:
    if "config" not in validation.mapping(f"solution {name}", part):
        raise InvalidValueError(f"solution {name}: got no field 'config'; expected one, add it")
    return dict(part)


_DERIVED = ("name", "grid", "EVEN_K", "ALLOW_TF32", "USE_FAST_ACCUM", "ACC_TYPE", "version")


def _fields(item: Any) -> tuple[tuple[str, int], ...]:
    """A config's fields, without those of older files that follow from the problem."""
    item = validation.mapping("solution config", item)
    return tuple((name, value) for name, value in item.items() if name not in _DERIVED)


def _per_problem(item: Any) -> SolutionConfig:
    fields = dict(_fields(item))
    sizes = tuple(fields.pop(name, None) for name in ("M", "N", "K"))
    if None in sizes:
        raise InvalidValueError("solution config: got no M, N or K; expected all three")
    op: Any = fields.pop("op", None)
    return SolutionConfig(tuple(fields.items()), op, sizes)  # type: ignore[arg-type]


def _configs(value: Any) -> list[Any]:
    return validation.sequence("solution configs", value)
