"""The rule by which the C++ kernel of attention takes ATen's place on a CPU: within the sizes that
were measured there, with the thread counts they were measured with."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from torch_diode.files.header import check_header
from torch_diode.files.json import read_json
from torch_diode.hardware.versions import same_release
from torch_diode.heuristics.base import digest
from torch_diode.heuristics.custom import CustomAnswer
from torch_diode.model.registry import shipped_folders
from torch_diode.types import validation
from torch_diode.types.candidate import CPP_ATTENTION
from torch_diode.types.errors import InvalidValueError
from torch_diode.types.hardware import Hardware

DECISION = "sdpa"
VERSION = 1
FORM = "attention rule"
SIZES = ("queries", "keys", "head_dim")


class AttentionRule(CustomAnswer):
    """Answers with the C++ kernel where `within` has the least and the most of each size."""

    def __init__(
        self,
        hardware: str,
        threads: tuple[int, ...],
        within: Mapping[str, tuple[int, int]],
        releases: tuple[str, ...] = (),
    ) -> None:
        super().__init__(DECISION, self.answer, f"measured on {hardware}")
        self.portable = True
        self.hardware, self.threads = hardware, threads
        self.within = dict(within)
        self.releases = releases
        """The torch releases whose kernels were measured."""

    def answer(self, question: Any) -> str | None:
        """The C++ kernel; None on another CPU, with other threads or for other sizes."""
        here = question.hardware
        if here.name != self.hardware or here.threads not in self.threads:
            return None
        sizes = ((getattr(question, name), limits) for name, limits in self.within.items())
        return CPP_ATTENTION if all(low <= size <= high for size, (low, high) in sizes) else None

    def is_of(self, release: str) -> bool:
        """True if kernels of this torch release were measured."""
        return same_release(release, self.releases)

    def fingerprint(self) -> str:
        """Digest of the rule."""
        rule = [self.hardware, list(self.threads), sorted(self.within.items())]
        return digest(DECISION, json.dumps(rule))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> AttentionRule:
        """A rule from its JSON file."""
        return read_json(path, _parse)  # type: ignore[no-any-return]


def _parse(data: Any) -> AttentionRule:
    check_header(data, FORM, VERSION)
    limits = validation.mapping("within", data.get("within"))
    validation.known_keys("within", limits, SIZES, required=SIZES)
    within = {name: _range(name, limits[name]) for name in SIZES}
    counts = validation.sequence("threads", data.get("threads"))
    threads = tuple(validation.whole_number("rule", "threads", each, low=1) for each in counts)
    releases = validation.mapping("provenance", data.get("provenance", {})).get("torch", [])
    return AttentionRule(str(data.get("hardware")), threads, within, tuple(map(str, releases)))


def _range(name: str, limits: Any) -> tuple[int, int]:
    ends = validation.sequence(name, limits)
    if len(ends) != 2:
        raise InvalidValueError(f"{name}: got {limits!r:.40}; expected the least and the most")
    low, high = (validation.whole_number("within", name, each, low=1) for each in ends)
    return low, high


@lru_cache(maxsize=8)
def shipped_rule(hardware: Hardware) -> AttentionRule | None:
    """The rule that came along for this CPU."""
    for folder in shipped_folders():
        path = folder / DECISION / hardware.name / "kernel.json"
        if hardware.kind == "cpu" and path.is_file():
            return AttentionRule.load(path)
    return None
