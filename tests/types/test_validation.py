from functools import partial

import numpy as np
import pytest

from torch_diode.types import validation
from torch_diode.types.errors import DiodeError, InvalidValueError

NAN, INFINITY = float("nan"), float("inf")


def test_an_error_names_field_value_and_expectation_in_one_short_line():
    with pytest.raises(InvalidValueError, match=r"^MMShape\.M: got 0; expected a whole number"):
        validation.whole_number("MMShape", "M", 0, low=1)
    with pytest.raises(DiodeError) as fault:
        validation.one_of("Table", "name", "\n" + "x" * 10_000, ("mm",))
    assert isinstance(fault.value, ValueError)
    assert "\n" not in str(fault.value)
    assert len(str(fault.value)) < 200


@pytest.mark.parametrize("value", [3, np.int8(3), np.int64(3)])
def test_whole_numbers_of_any_kind_pass_as_plain_ints(value):
    assert type(validation.whole_number("x", "y", value, low=1)) is int


@pytest.mark.parametrize(
    ("check", "values"),
    [
        (partial(validation.whole_number, low=1), [True, 3.0, "3", None, [3], 2**31, 0]),
        (partial(validation.power_of_two, low=1, high=4096), [3, 0, 8192, 12]),
        (validation.positive_time, [0, -1.0, NAN, INFINITY, 10**400, True, "1", None]),
        (validation.fraction, [-0.1, NAN, INFINITY, 10**400, True, "1"]),
        (validation.flag, [0, 1, "true", None]),
    ],
)
def test_invalid_values_are_refused(check, values):
    for value in values:
        with pytest.raises(InvalidValueError, match=r"x\.y: got"):
            check("x", "y", value)


def test_a_name_matches_whole_and_has_a_limit():
    assert validation.name("x", "y", "ab", "[a-z]+", "letters") == "ab"
    for bad in ("ab\n", "a b", "a" * 201, None, b"ab"):
        with pytest.raises(InvalidValueError):
            validation.name("x", "y", bad, "[a-z]+", "letters")
