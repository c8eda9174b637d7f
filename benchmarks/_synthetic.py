"""A made-up dataset with the statistics of a real one, to measure files.

Shapes follow the log-normal distribution of real workloads; times are a roofline with a config's
efficiency and noise, rounded like GPU events. Failed candidates are included.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from torch_diode.collection.shape_sampling import LogNormal
from torch_diode.types import schema as spec
from torch_diode.types.dataset import Dataset

EVENT_US = 0.032
LAW = {"M": LogNormal.m, "N": LogNormal.n, "K": LogNormal.k}
KINDS = (
    ("mm", "bfloat16", "none"),
    ("mm", "float16", "none"),
    ("mm", "float32", "none"),
    ("addmm", "bfloat16", "vector"),
    ("addmm", "float16", "matrix"),
    ("bmm", "bfloat16", "none"),
    ("baddbmm", "float16", "matrix"),
)


def synthetic(problems: int, candidates: int, seed: int = 0) -> Dataset:
    """Dataset of the given number of problems and candidates per problem (at most 1,441)."""
    random = np.random.default_rng(seed)
    space = _space(random, candidates)
    drawn = _problems(random, problems)
    rows = problems * candidates
    which = np.repeat(np.arange(problems), candidates)
    values: dict[str, Any] = {name: drawn[name][which] for name in drawn}
    values |= {name: np.tile(space[name], problems) for name in space}
    values |= _results(random, values)
    values["hardware"] = np.zeros(rows, dtype=np.int16)
    values["method"] = np.zeros(rows, dtype=np.int16)
    values["torch"] = np.zeros(rows, dtype=np.int16)
    values["triton"] = np.zeros(rows, dtype=np.int16)
    arrays = {name: _array(name, values[name]) for name in spec.BY_NAME}
    return Dataset(pa.table(arrays), {"collected": ("2026-01-01",)})


TEXTS = {
    "hardware": ["nvidia-h200"],
    "op": ["mm", "addmm", "bmm", "baddbmm"],
    "dtype": ["bfloat16", "float16", "float32"],
    "out_dtype": ["bfloat16", "float16", "float32"],
    "bias": ["none", "vector", "matrix"],
    "template": ["aten", "triton::mm", "triton::bmm", "triton::mm_persistent_tma"],
    "status": ["ok", "out_of_resources", "failed"],
    "method": ["sweep"],
    "torch": ["2.13.0"],
    "triton": ["3.6.0"],
}


def _array(name: str, values: npt.NDArray[Any]) -> pa.Array:
    if name in TEXTS:
        codes = pa.array(values.astype(np.int16))
        return pa.DictionaryArray.from_arrays(codes, pa.array(TEXTS[name]))
    if values.dtype.kind == "f":
        return pa.array(values.astype(np.float32), mask=np.isnan(values))
    return pa.array(values).cast(spec.BY_NAME[name].type)


def _problems(random: np.random.Generator, count: int) -> dict[str, npt.NDArray[Any]]:
    """Distinct problems; one size in four is a multiple of 64."""
    sizes = {
        name: np.clip(np.exp(random.normal(mean, std, count)), 1, 65536).astype(np.int32)
        for name, (mean, std) in LAW.items()
    }
    even = random.random(count) < 0.25
    sizes = {n: np.where(even, (v + 63) // 64 * 64, v).astype(np.int32) for n, v in sizes.items()}
    sizes["M"] = np.where(np.arange(count) % 2, sizes["M"], sizes["M"] + 1)
    kinds = [KINDS[i] for i in random.integers(len(KINDS), size=count)]
    batched = np.array([op in ("bmm", "baddbmm") for op, *_ in kinds])
    # Distinguish repeated draws of one tiny problem by the batch or N.
    seen: set[tuple[int, ...]] = set()
    for i, kind in enumerate(kinds):
        while (row := (*(int(sizes[n][i]) for n in "MNK"), KINDS.index(kind))) in seen:
            sizes["N"][i] += 1
        seen.add(row)
    return {
        **sizes,
        "B": np.where(batched, random.integers(1, 65, count), 1).astype(np.int32),
        "op": np.array([TEXTS["op"].index(op) for op, _, _ in kinds]),
        "dtype": np.array([TEXTS["dtype"].index(dtype) for _, dtype, _ in kinds]),
        "out_dtype": np.array([TEXTS["dtype"].index(dtype) for _, dtype, _ in kinds]),
        "bias": np.array([TEXTS["bias"].index(bias) for _, _, bias in kinds]),
        "transpose_a": random.random(count) < 0.2,
        "transpose_b": random.random(count) < 0.6,
        "tf32": np.array([dtype == "float32" for _, dtype, _ in kinds]),
    }


def _space(random: np.random.Generator, count: int) -> dict[str, npt.NDArray[Any]]:
    """ATen, then Triton configs sampled from the exhaustive grid."""
    grid = list(product((1, 3), (16, 32, 64, 128, 256), (16, 32, 64, 128, 256), (16, 32, 64, 128)))
    grid = [(*config, s, w) for config in grid for s, w in product((2, 3, 4, 5), (4, 8))]
    picked = [grid[i] for i in sorted(random.permutation(len(grid))[: count - 1])]
    table = np.array([(0, 0, 0, 0, 0, 0), *picked], dtype=np.int32)
    names = ("template", "block_m", "block_n", "block_k", "num_stages", "num_warps")
    fields = {name: table[:, i] for i, name in enumerate(names)}
    fields["group_m"] = np.where(fields["block_m"] > 0, 8, 0)
    for name in ("waves_per_eu", "matrix_instr_nonkdim", "kpack"):
        fields[name] = np.zeros(count, dtype=np.int32)
    fields["split_k"] = np.ones(count, dtype=np.int32)
    return fields


def _results(
    random: np.random.Generator, v: dict[str, npt.NDArray[Any]]
) -> dict[str, npt.NDArray[Any]]:
    """Times on a grid of event ticks, spreads for repeated samples, and failures."""
    rows = len(v["M"])
    block_m, block_n = np.maximum(v["block_m"], 64), np.maximum(v["block_n"], 64)
    tiles = -(-v["M"] // block_m).astype(np.int64) * -(-v["N"] // block_n) * v["B"]
    waves = -(-tiles // 132)
    work = waves * block_m * block_n * v["K"].astype(np.float64) / 5e6
    time = 2.0 + work * np.exp(random.normal(0, 0.15, rows)) * (1 + 64 / (block_m + block_n))
    ticks = np.maximum(np.round(time / EVENT_US), 1)
    repeats = np.where(random.random(rows) < 0.15, 5, 1).astype(np.int16)
    spread = np.where(repeats > 1, random.integers(0, 8, rows) / (2 * ticks), np.nan)
    shared = (block_m + block_n) * v["block_k"] * 2 * v["num_stages"]
    status = np.where(shared > 232_448, 1, np.where(random.random(rows) < 0.001, 2, 0))
    status[v["template"] == 0] = 0
    failed = status != 0
    return {
        "time_us": np.where(failed, np.nan, ticks * EVENT_US),
        "spread": np.where(failed, np.nan, spread),
        "repeats": np.where(failed, 0, repeats),
        "status": status,
    }
