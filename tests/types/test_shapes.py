import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.samples import BATCHED, LINEAR
from tests.strategies import problems
from torch_diode.types.errors import InvalidValueError
from torch_diode.types.shapes import CountedShape, OperationShapeSet, ShapeSet

shapes = st.lists(problems(st.integers(1, 2)), max_size=10)


@given(shapes)
def test_equal_problems_are_counted_up(items):
    found = {shape.problem: shape.count for shape in ShapeSet.of(items)}
    assert found == {problem: items.count(problem) for problem in items}


@given(shapes)
def test_operations_hold_every_problem_under_its_own(items):
    sets = OperationShapeSet.of(items)
    assert set(sets.problems) == set(items)
    assert len(sets) == len(set(items))
    for op, members in sets.operations:
        assert {problem.op for problem in members.problems} == {op}
        assert sets[op] == members


@given(problems(), st.integers(1, 9), st.text(max_size=5))
def test_a_counted_shape_survives_json(problem, count, origin):
    shape = CountedShape(problem, count, origin)
    assert CountedShape.from_dict(shape.to_dict()) == shape


def test_json_leaves_out_what_has_its_default():
    sizes = {"op": "mm", "M": 512, "N": 4096, "K": 4096}
    assert CountedShape(LINEAR).to_dict() == {**sizes, "dtype": "bfloat16", "transpose_b": True}


def test_the_first_origin_is_kept():
    named = [CountedShape(LINEAR), CountedShape(LINEAR, 2, "llama"), CountedShape(LINEAR, 1, "vit")]
    assert ShapeSet.of(named).shapes == (CountedShape(LINEAR, 4, "llama"),)


def test_an_invalid_shape_or_set_is_refused():
    for count in (0, -1, 1.5, True):
        with pytest.raises(InvalidValueError, match=r"shape\.count"):
            CountedShape(LINEAR, count)
    with pytest.raises(InvalidValueError, match=r"shape\.problem"):
        CountedShape("mm")
    with pytest.raises(InvalidValueError, match=r"shape\.origin"):
        CountedShape(LINEAR, 1, "x" * 501)
    with pytest.raises(InvalidValueError, match="a problem twice"):
        ShapeSet((CountedShape(LINEAR), CountedShape(LINEAR)))
    with pytest.raises(InvalidValueError, match="got a bmm problem under 'mm'"):
        OperationShapeSet((("mm", ShapeSet.of([BATCHED])),))
    with pytest.raises(InvalidValueError, match="an operation twice"):
        OperationShapeSet((("mm", ShapeSet()), ("mm", ShapeSet())))
