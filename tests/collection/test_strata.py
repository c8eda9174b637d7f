from __future__ import annotations

import math
from pathlib import Path

from torch_diode.collection.strata import training_strata, validation_strata
from torch_diode.files.shape_sets import read_shapes
from torch_diode.types.problem import MMShape

REAL = Path(__file__).parents[2] / "diode_datasets/shapes/real_models.json"


def test_names_tell_strata_apart() -> None:
    strata = training_strata()
    assert len({s.name for s in strata}) == len(strata)


def test_every_way_a_row_of_a_real_model_divides_is_trained_on() -> None:
    """No kind of kernel that a real model needs may be one that no training problem has."""
    real = read_shapes(REAL).problems
    ours = [p for s in training_strata() for p in s.problems(6, seed=1, log_normal=0.0)]
    missing = {_rows(p) for p in real} - {_rows(p) for p in ours}
    few = [p for p in real if _rows(p) in missing]
    assert len(few) <= 0.015 * len(real), few


def _rows(problem: MMShape) -> tuple[str, str, bool, int, int]:
    """The precision's width, the layout, and how the rows a kernel loads and stores divide, up to
    16 bytes."""
    most = 4 if problem.dtype == "float32" else 8
    units = [math.gcd(size, most) for size in (problem.N, problem.K)]
    dtype = "float32" if most == 4 else "half"
    return (dtype, problem.layout, problem.tf32, units[0], units[1])


def test_validation_has_every_op_and_precision() -> None:
    strata = [stratum for stratum, _ in validation_strata()]
    assert {s.op for s in strata} == {"mm", "addmm", "bmm", "baddbmm"}
    assert {s.precision for s in strata} == {"bfloat16", "float16", "tf32", "float32"}
    assert sum(count for _, count in validation_strata()) >= 500
