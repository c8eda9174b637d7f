"""Catalog of chips: normalised names, published properties and stand-ins, from `chips.json`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

from torch_diode.types.errors import HardwareMismatchError, InvalidValueError
from torch_diode.types.hardware import Hardware

_NOISE = re.compile(
    r"\((r|tm|c)\)|(?<![a-z0-9])(corporation|cpu|processor)(?![a-z0-9])|\bw/.*$|@.*$"
)
_OWN_FIELDS = ("reported", "stand_ins")


@lru_cache(maxsize=1)
def _chips() -> dict[str, dict[str, Any]]:
    """Chips by normalised name, in the order of the file."""
    text = Path(__file__).with_name("chips.json").read_text(encoding="utf-8")
    return {chip["name"]: chip for chip in json.loads(text)["chips"]}


@lru_cache(maxsize=1)
def _aliases() -> dict[str, str]:
    return {_slug(raw): chip["name"] for chip in _chips().values() for raw in chip["reported"]}


def _slug(raw: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", _NOISE.sub(" ", raw.lower())).strip("-")


def normalise(raw: str) -> str:
    """Normalised name of a chip: `NVIDIA H100 80GB HBM3` and `nvidia-h100` become `nvidia-h100`."""
    slug = _slug(raw) if isinstance(raw, str) else ""
    if not slug:
        raise InvalidValueError(
            f"hardware name: got {raw!r:.80}; expected a chip's name, such as NVIDIA H200"
        )
    return _aliases().get(slug, slug)


def known_names() -> tuple[str, ...]:
    """Names of the chips whose published properties are on file."""
    return tuple(_chips())


def known(name: str) -> Hardware:
    """Published properties of a chip, by any of its names."""
    chip = _chips().get(normalise(name))
    if chip is None:
        raise HardwareMismatchError(
            f"hardware: got {name!r:.80}; expected one of {', '.join(_chips())}"
        )
    return Hardware.from_dict({k: v for k, v in chip.items() if k not in _OWN_FIELDS})


def reported_names(name: str) -> tuple[str, ...]:
    """Names that drivers report for this chip; the normalised name itself if unknown."""
    chip = _chips().get(normalise(name))
    return tuple(chip["reported"]) if chip else (name,)


def stand_ins(hardware: Hardware, available: Iterable[str]) -> list[str]:
    """Available chips whose data can be used for this one, best first.

    The chip itself, then those named in its entry, then any of the same architecture in the order
    of the file. A chip of another architecture runs other kernels and never stands in. A CPU's
    architecture says too little about it: only those of its entry stand in for it.
    """
    offered = list(dict.fromkeys(available))
    named = _chips().get(hardware.name, {}).get("stand_ins", [])
    shares_arch = bool(hardware.arch) and hardware.kind != "cpu"
    arch = [n for n, chip in _chips().items() if shares_arch and chip["arch"] == hardware.arch]
    order = dict.fromkeys([hardware.name, *named, *arch])
    return [name for name in order if name in offered]
