"""The candidate space: all configs of the offered templates that the chip can run.

Arrays are cached per set of templates, kind of problem and chip, and per cap on the blocks, so that
a call for one problem is a lookup.

If a block holds all of K, the kernel has no loop and configs that differ only in stages are the
same kernel. The space has it once, with the fewest stages (one on NVIDIA's chips, two on AMD's); a
table, a list or a solution may name it with any number of stages.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from torch_diode.candidates.cpu.cpp_gemm import cpp_configs
from torch_diode.candidates.cpu.libraries import libraries
from torch_diode.candidates.gpu.eligibility import can_offer, k_splits, offered_templates
from torch_diode.candidates.gpu.exhaustive import BLOCKS, exhaustive_configs
from torch_diode.candidates.gpu.resources import (
    avoids_spills_in_one_step,
    fits,
    reads_a_without_transposing,
    resources_of,
    worth_compiling,
)
from torch_diode.types.candidate import (
    ATEN,
    CPP_GEMM,
    DECOMPOSE_K,
    TMA_TEMPLATES,
    Candidate,
    CppGEMMConfig,
)
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape

FEWEST_STAGES = 1
_VENDOR = Candidates.of([Candidate(ATEN)])


def candidate_space(
    problem: MMShape, hardware: Hardware, templates: Iterable[str] | None = None
) -> Candidates:
    """All candidates of a problem: splits of K, ATen, then the configs of each Triton template.

    `templates` are those that torch offers; by default what Inductor has for such a problem
    (`offered_templates`), on a CPU everything that can run it with a constant B. A template that
    cannot run the problem, or has no rule here, adds nothing. The arrays are shared and read-only.
    """
    if hardware.kind == "cpu":
        return _cpu_space(problem, hardware, None if templates is None else tuple(templates))
    if templates is None:
        offered = offered_templates(problem, hardware)
    else:
        given = dict.fromkeys(templates)
        offered = tuple(name for name in given if can_offer(name, problem, hardware))
    triton = tuple(name for name in offered if name not in (ATEN, DECOMPOSE_K))
    caps = (block_cap(problem.M), block_cap(problem.N), block_cap(problem.K))
    one_step = caps[2] >= problem.K
    rest = _capped(triton, _kind_of(problem), hardware, caps, one_step, ATEN in offered)
    if DECOMPOSE_K not in offered:
        return rest
    return Candidates.concat([_split_candidates(k_splits(problem)), rest])


def block_cap(size: int) -> int:
    """Largest block Inductor uses for a size: the next power of two, at least 16."""
    return min(max(1 << (size - 1).bit_length(), BLOCKS[0]), BLOCKS[-1])


def loops_over_k(template: str, block_k: Any, k: Any) -> npt.NDArray[np.bool_]:
    """True if kernels loop over K, so that stages matter; TMA kernels always do."""
    return np.asarray((np.asarray(block_k) < k) | (template in TMA_TEMPLATES))


def canonical_candidate(candidate: Candidate, problem: MMShape) -> Candidate:
    """The candidate with the fewest stages if they make no difference to its kernel."""
    config = candidate.triton
    if config is None or loops_over_k(candidate.template, config.block_k, problem.K):
        return candidate
    return replace(candidate, config=replace(config, num_stages=FEWEST_STAGES))


def position_of(candidate: Candidate, candidates: Candidates, problem: MMShape) -> int | None:
    """The row of a candidate's kernel among those of a problem, by the candidate itself or its
    canonical form; None where it is not among them."""
    position = candidates.position(candidate)
    if position is None and (other := canonical_candidate(candidate, problem)) != candidate:
        position = candidates.position(other)
    return position


def _kind_of(problem: MMShape) -> MMShape:
    """The problem without its sizes, on which the static part of the space depends."""
    p = problem
    return _kind(p.op, p.dtype, p.out_dtype, p.transpose_a, p.transpose_b, p.tf32, p.bias)


@lru_cache(maxsize=256)
def _kind(op: str, dtype: str, out_dtype: str, a: bool, b: bool, tf32: bool, bias: str) -> MMShape:
    return MMShape(op, 1, 1, 1, 1, dtype, out_dtype, a, b, tf32, bias)


@lru_cache(maxsize=64)
def _feasible(template: str, kind: MMShape, hardware: Hardware) -> Candidates:
    configs = exhaustive_configs(template, hardware.kind)
    can_run = fits(resources_of(configs, kind, hardware), configs, hardware)
    can_run &= worth_compiling(configs, kind) & reads_a_without_transposing(configs, kind, hardware)
    return configs.take(can_run)


@lru_cache(maxsize=256)
def _capped(
    triton: tuple[str, ...],
    kind: MMShape,
    hardware: Hardware,
    caps: tuple[int, int, int],
    one_step: bool,
    vendor: bool,
) -> Candidates:
    """`one_step`: K fits the largest block, whose kernel then has no loop over K and does not use
    stages, except for TMA templates."""
    parts = [_VENDOR] if vendor else []
    for template in triton:
        configs = _feasible(template, kind, hardware)
        mask = np.ones(len(configs), bool)
        for name, cap in zip(("block_m", "block_n", "block_k"), caps, strict=True):
            mask &= configs.fields[name] <= cap
        if one_step:
            looping = configs.fields["block_k"] < caps[2]
            mask &= looping | avoids_spills_in_one_step(configs, kind)
            if template not in TMA_TEMPLATES:
                mask &= looping | _fewest_stages(configs)
        parts.append(configs.take(mask))
    return _read_only(Candidates.concat(parts))


def _fewest_stages(configs: Candidates) -> npt.NDArray[np.bool_]:
    """Mask of the config with the fewest stages among those that differ in nothing else."""
    names = [name for name in configs.fields if name != "num_stages"]
    others = np.stack([configs.fields[name] for name in names], axis=1)
    by_stages = np.argsort(configs.fields["num_stages"], kind="stable")
    _, first = np.unique(others[by_stages], axis=0, return_index=True)
    chosen = np.zeros(len(configs), bool)
    chosen[by_stages[first]] = True
    return chosen


def _cpu_space(
    problem: MMShape, hardware: Hardware, templates: tuple[str, ...] | None
) -> Candidates:
    runs = libraries(problem, hardware)
    if templates is None:
        return _cpu_candidates(runs, cpp_configs(problem, hardware))
    offered = tuple([name for name in templates if name in runs])
    configs = cpp_configs(problem, hardware) if CPP_GEMM in templates else ()
    return _cpu_candidates(offered, configs)


@lru_cache(maxsize=64)
def _cpu_candidates(names: tuple[str, ...], configs: tuple[CppGEMMConfig, ...]) -> Candidates:
    templates = (Candidate(CPP_GEMM, config) for config in configs)
    return _read_only(Candidates.of([*map(Candidate, names), *templates]))


@lru_cache(maxsize=64)
def _split_candidates(splits: tuple[int, ...]) -> Candidates:
    return _read_only(Candidates.of(Candidate(DECOMPOSE_K, split_k=split) for split in splits))


def _read_only(candidates: Candidates) -> Candidates:
    for values in (candidates.template, *candidates.fields.values()):
        values.setflags(write=False)
    return candidates
