"""A table in the form of torch's own `lookup_table` (torch 2.10 and later).

A key holds the device's name, each input's dtype, sizes and strides, the scalars and the op; an
entry holds a template's id and its arguments. All arguments of a template are written out, because
torch 2.10 and 2.11 have no defaults for them.

For addmm torch looks up ATen and Triton separately; where a table has only one of them, torch adds
its own list for the other.
"""

from __future__ import annotations

from typing import Any

from torch_diode.hardware.catalog import reported_names
from torch_diode.types.candidate import ATEN, DECOMPOSE_K, Candidate
from torch_diode.types.problem import BATCHED, MMShape
from torch_diode.types.table import Table, TableEntry

Input = tuple[list[int], list[int]]
_ACCUMULATORS = {"float64": "tl.float64", "int8": "tl.int32", "int32": "tl.int32"}


def inductor_table(table: Table) -> dict[str, list[dict[str, Any]]]:
    """Keys and entries in the form of `torch._inductor.config.lookup_table.table`.

    It has no CPUs, and no ranges of M: a row with one stands for its own M.
    """
    result: dict[str, list[dict[str, Any]]] = {}
    for hardware, problem, entries in table:
        converted = [c for entry in entries for c in _entries(problem, entry)]
        for device in reported_names(hardware) if converted else ():
            for key in _keys(problem):
                result[f"{device}+{key}"] = converted
    return result


def _keys(problem: MMShape) -> list[str]:
    """A problem's keys: two for addmm, which torch looks up with the bias as it is and expanded."""
    scalars = "+alpha=1&beta=1" if problem.bias != "none" else ""
    keys = []
    for inputs in _inputs(problem):
        nodes = ", ".join(f"(torch.{problem.dtype}, {size}, {stride})" for size, stride in inputs)
        keys.append(f"({nodes}){scalars}+{problem.op}")
    return keys


def _inputs(problem: MMShape) -> list[list[Input]]:
    a = _matrix(problem, problem.M, problem.K, problem.transpose_a)
    b = _matrix(problem, problem.K, problem.N, problem.transpose_b)
    full = _matrix(problem, problem.M, problem.N, False)
    if problem.bias == "none":
        return [[a, b]]
    if problem.bias == "matrix":
        return [[full, a, b]]
    broadcast = (full[0], [0] * (len(full[0]) - 1) + [1])
    return [[([problem.N], [1]), a, b], [broadcast, a, b]]


def _matrix(problem: MMShape, rows: int, columns: int, transposed: bool) -> Input:
    size, stride = [rows, columns], [1, rows] if transposed else [columns, 1]
    if problem.op in BATCHED:
        return [problem.B, *size], [rows * columns, *stride]
    return size, stride


def _entries(problem: MMShape, entry: TableEntry) -> list[dict[str, Any]]:
    """A candidate's entries: two for ATen's addmm, which torch offers under one of two names."""
    hashed = {"template_hash": entry.template_hash} if entry.template_hash else {}
    candidate = entry.candidate
    if candidate.template == ATEN:
        names = [problem.op, "bias_addmm"] if problem.op == "addmm" else [problem.op]
        return [{"template_id": f"aten::{name}", **hashed} for name in names]
    if candidate.template == DECOMPOSE_K:
        return [{"template_id": DECOMPOSE_K, "k_split": candidate.split_k, **hashed}]
    if candidate.triton is None:
        return []
    return [{"template_id": candidate.template, **_arguments(problem, candidate), **hashed}]


def _arguments(problem: MMShape, candidate: Candidate) -> dict[str, Any]:
    config = candidate.triton
    assert config is not None
    arguments: dict[str, Any] = {
        "BLOCK_M": config.block_m,
        "BLOCK_N": config.block_n,
        "BLOCK_K": config.block_k,
        "GROUP_M": config.group_m,
        "num_stages": config.num_stages,
        "num_warps": config.num_warps,
        "EVEN_K": problem.K % config.block_k == 0,
        "USE_FAST_ACCUM": False,
        "ACC_TYPE": _ACCUMULATORS.get(problem.out_dtype, "tl.float32"),
    }
    for name in ("waves_per_eu", "matrix_instr_nonkdim", "kpack"):
        if getattr(config, name):
            arguments[name] = getattr(config, name)
    return arguments
