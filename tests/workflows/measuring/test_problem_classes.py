import math
from pathlib import Path

from torch_diode.files.shape_sets import read_shapes
from torch_diode.types.problem import MMShape
from workflows.measuring.problem_classes import training_classes, validation_classes

REAL = Path(__file__).parents[3] / "diode_datasets/shapes/real_models.json"

NOT_DRAWN = {
    "mm:65x384x16384:bfloat16:tn",
    "bmm:768x197x64x197:bfloat16:tn",
    "mm:8192x256x1:float16:nn",
}
"""A read along an odd M, and a K of one."""


def test_names_of_classes_are_unique():
    classes = training_classes()
    assert len({s.name for s in classes}) == len(classes)


def test_training_covers_nearly_every_alignment_of_real_models():
    """The kernel depends on the alignment, and one alignment says little about another."""
    ours = {_rows(p) for s in training_classes() for p in s.problems(8, seed=1, log_normal=0.0)}
    missing = {str(p) for p in read_shapes(REAL).problems if _rows(p) not in ours}
    assert missing <= NOT_DRAWN


def _rows(problem: MMShape) -> tuple[object, ...]:
    """The kind, and how the rows that its kernel loads and stores divide, up to 16 bytes. The two
    half precisions count as one: their kernels are the same."""
    most = 4 if problem.dtype == "float32" else 8
    a = problem.M if problem.transpose_a else problem.K
    b = problem.K if problem.transpose_b else problem.N
    units = [math.gcd(size, most) if size > 1 else 0 for size in (a, b, problem.N)]
    return (problem.op, most, problem.tf32, problem.layout, problem.bias, *units)


def test_validation_has_every_op_and_precision():
    classes = [problem_class for problem_class, _ in validation_classes()]
    assert {s.op for s in classes} == {"mm", "addmm", "bmm", "baddbmm"}
    assert {s.precision for s in classes} == {"bfloat16", "float16", "tf32", "float32"}
    assert sum(count for _, count in validation_classes()) >= 500
