"""A heuristic without training: an analytical model of tiles on units.

It applies to any GPU whose properties are known and to any CPU, as the last in a chain and as the
baseline for trained models. It ignores what compilers and libraries do, so its order and its times
are rough.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from torch_diode._bounded_cache import BoundedCache
from torch_diode.candidates.gpu.eligibility import tma_aligned
from torch_diode.candidates.gpu.resources import (
    blocks_per_unit,
    resources_of,
    uses_matrix_unit_on_shared,
)
from torch_diode.heuristics.base import Heuristic, digest
from torch_diode.heuristics.tile_model import Constants, Floats, Tiles, peak_tflops, tile_times_us
from torch_diode.model.features.kernel_times import kernel_us
from torch_diode.model.features.problem_arrays import OneProblem
from torch_diode.types.candidate import (
    ATEN,
    CPP_GEMM,
    DECOMPOSE_K,
    LIBRARIES,
    Candidate,
    CppGEMMConfig,
)
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import DTYPE_BYTES, MMShape
from torch_diode.types.ranking import Ranking

_VERSION = "2"
CPU_DTYPES = ("float32", "bfloat16", "float16")
_ASSUMED_ERROR = 0.3
"""Error reported in the literature for such models, not measured here."""
_VENDOR_TILES = ((64, 64), (64, 128), (128, 64), (128, 128), (64, 256), (128, 256), (256, 128))
_VENDOR_BLOCK_BYTES = 128
_VENDOR_SPLITS = (1, 2, 4, 8, 16)
_VENDOR_LEAST_K = 128
_UNALIGNED_STAGES = 2
"""Loads of unaligned rows cannot be asynchronous."""
_FLOAT32_BYTES = 4
_KINDS_KEPT = 16


class AnalyticalHeuristic(Heuristic):
    """Orders a GPU's ATen, splits of K and Triton configs, or a CPU's libraries and C++ templates,
    by modelled time. Abstains on a GPU with unknown units, bandwidth or matrix rate, and on
    templates without a model."""

    steady = True

    def __init__(self, constants: Constants | None = None, name: str = "analytical") -> None:
        self.constants = constants or Constants()
        self.name = name

    def rank(self, problem: MMShape, candidates: Candidates, hardware: Hardware) -> Ranking | None:
        """All candidates by modelled time."""
        if self.why_abstained(problem, candidates, hardware):
            return None
        times = self.predict_us(problem, candidates, hardware)
        error = np.full(len(candidates), _ASSUMED_ERROR)
        return Ranking.by_time(times, self.name, error, candidates)

    def predict_us(
        self, problem: MMShape, candidates: Candidates, hardware: Hardware
    ) -> npt.NDArray[np.float64]:
        """Modelled microseconds, in the candidates' order."""
        if hardware.kind == "cpu":
            one = OneProblem(problem, hardware.threads)
            return np.array([kernel_us(one, hardware, c.template, _block(c)) for c in candidates])
        tiles = _tiles_of(candidates, problem, hardware)
        times = tile_times_us(problem, tiles, hardware, self.constants)
        times += self.constants.descriptor_us * tiles.persistent
        vendor = candidates.is_template(ATEN)
        if vendor.any():
            times[vendor] = self._vendor_us(problem, np.ones(1), hardware)
        splits = candidates.is_template(DECOMPOSE_K)
        if splits.any():
            parts = candidates.fields["split_k"][splits].astype(np.float64)
            times[splits] = self._vendor_us(problem, parts, hardware)
            times[splits] += self.constants.launch_us + self._sum_us(problem, parts, hardware)
        return times

    def _vendor_us(self, problem: MMShape, parts: Floats, hardware: Hardware) -> Floats:
        """Times of the library for each number of parts of K: the best of a few tiles, with K split
        further where tiles are too few."""
        c = self.constants
        tiles, further = _vendor_tiles(DTYPE_BYTES[problem.dtype])
        rows = np.repeat(parts, len(further))
        tiles = _tiled(tiles, len(parts))
        further = np.tile(further, len(parts))
        times = tile_times_us(problem, tiles, hardware, c, rows * further, c.vendor_gain)
        times += self._sum_us(problem, np.where(further > 1, rows * further, 0.0), hardware)
        times[(further > 1) & (rows * further * _VENDOR_LEAST_K > problem.K)] = np.inf
        best = times.reshape(len(parts), -1).min(axis=1)
        slowdown = 1.0 if tma_aligned(problem) else c.unaligned_vendor
        return np.asarray(c.vendor_launch_us + best * slowdown)

    def _sum_us(self, problem: MMShape, parts: Floats, hardware: Hardware) -> Floats:
        """Times of adding up the parts: each is written once and read once."""
        passed = 2.0 * problem.B * problem.M * problem.N * _FLOAT32_BYTES * parts
        return passed / (hardware.memory_gbps * 1e3 * self.constants.memory_efficiency)

    def why_abstained(self, problem: MMShape, candidates: Candidates, hardware: Hardware) -> str:
        """The properties or templates that the model does not know."""
        if not len(candidates):
            return "there are no candidates"
        if hardware.kind == "cpu":
            return _why_unknown_on_cpu(problem, candidates)
        rate = peak_tflops(problem, hardware)
        known = {"units": hardware.units, "memory_gbps": hardware.memory_gbps, "tflops": rate}
        missing = [name for name, value in known.items() if not value]
        if missing:
            return f"{hardware.name}: {', '.join(missing)} not known for {problem.dtype}"
        others = candidates.template[candidates.fields["block_m"] == 0]
        names = {candidates.templates[i] for i in np.unique(others)} - {ATEN, DECOMPOSE_K}
        return f"{self.name} has no model of {', '.join(sorted(names))}" if names else ""

    def fingerprint(self) -> str:
        """The model's version and its constants."""
        return digest("analytical", _VERSION, self.name, repr(self.constants))


def _block(candidate: Candidate) -> tuple[int, int] | None:
    config = candidate.config
    return (config.block_m, config.block_n) if isinstance(config, CppGEMMConfig) else None


def _why_unknown_on_cpu(problem: MMShape, candidates: Candidates) -> str:
    """The dtype or the templates that the model does not know; empty where it knows all."""
    if problem.dtype not in CPU_DTYPES or problem.out_dtype != problem.dtype:
        return f"no rates of {problem.dtype} to {problem.out_dtype} on a CPU"
    names = {candidates.templates[i] for i in np.unique(candidates.template)}
    unknown = sorted(names - {*LIBRARIES, CPP_GEMM})
    return f"no model of {', '.join(unknown)} on a CPU" if unknown else ""


_tiles: WeakKeyDictionary[Candidates, BoundedCache[Any, Tiles]] = WeakKeyDictionary()


def _tiles_of(candidates: Candidates, problem: MMShape, hardware: Hardware) -> Tiles:
    """The tiles of the configs, computed once per kind of problem."""
    p = problem
    kind = (p.dtype, p.out_dtype, p.layout, p.tf32, p.op, p.bias, tma_aligned(p), hardware)
    kinds = _tiles.setdefault(candidates, BoundedCache(_KINDS_KEPT))
    if kind not in kinds:
        kinds[kind] = _new_tiles(candidates, problem, hardware)
    return kinds[kind]


def _new_tiles(candidates: Candidates, problem: MMShape, hardware: Hardware) -> Tiles:
    f = candidates.fields
    resources = resources_of(candidates, problem, hardware)
    stages = np.maximum(f["num_stages"], 1)
    if not tma_aligned(problem):
        stages = np.minimum(stages, _UNALIGNED_STAGES)
    persistent = np.zeros(len(candidates), bool)
    for template in candidates.templates:
        if "persistent" in template:
            persistent |= candidates.is_template(template)
    return Tiles(
        block_m=_at_least_one(f["block_m"]),
        block_n=_at_least_one(f["block_n"]),
        block_k=_at_least_one(f["block_k"]),
        num_warps=_at_least_one(f["num_warps"]),
        buffers=stages.astype(np.float64),
        resident=_at_least_one(blocks_per_unit(resources, candidates, hardware)),
        direct=uses_matrix_unit_on_shared(candidates, problem, hardware),
        persistent=persistent,
    )


def _at_least_one(values: npt.NDArray[np.integer]) -> Floats:
    return np.asarray(np.maximum(values, 1), dtype=np.float64)


@lru_cache(maxsize=8)
def _vendor_tiles(item: int) -> tuple[Tiles, Floats]:
    """The library's tiles, repeated for each number of parts of K, and that number."""
    blocks = np.repeat(np.array(_VENDOR_TILES, dtype=np.float64), len(_VENDOR_SPLITS), axis=0)
    count = len(blocks)
    tiles = Tiles(
        block_m=blocks[:, 0],
        block_n=blocks[:, 1],
        block_k=np.full(count, _VENDOR_BLOCK_BYTES / item),
        num_warps=np.full(count, 8.0),
        buffers=np.full(count, 4.0),
        resident=np.ones(count),
        direct=np.full(count, True),
        persistent=np.full(count, True),
    )
    return tiles, np.tile(np.array(_VENDOR_SPLITS, dtype=np.float64), len(_VENDOR_TILES))


def _tiled(tiles: Tiles, times: int) -> Tiles:
    if times == 1:
        return tiles
    return Tiles(**{name: np.tile(values, times) for name, values in vars(tiles).items()})
