from __future__ import annotations

import numpy as np
import pytest

from torch_diode.types import validation
from torch_diode.types.errors import DiodeError, InvalidValueError


def test_a_refusal_names_owner_field_value_and_what_was_expected():
    with pytest.raises(InvalidValueError, match=r"^MMShape\.M: got 0; expected a whole number"):
        validation.whole_number("MMShape", "M", 0, low=1)


def test_a_refusal_shortens_a_long_value():
    with pytest.raises(InvalidValueError) as fault:
        validation.refuse("Table", "name", "x" * 10_000, "less")
    assert len(str(fault.value)) < 200


def test_a_refusal_is_one_line_whatever_the_value_holds():
    with pytest.raises(InvalidValueError) as fault:
        validation.one_of("MMShape", "op", "m\nm", ("mm",))
    assert "\n" not in str(fault.value)


@pytest.mark.parametrize("value", [3, np.int8(3), np.int64(3)])
def test_whole_numbers_of_any_kind_pass_as_plain_ints(value):
    assert type(validation.whole_number("x", "y", value, low=1)) is int


@pytest.mark.parametrize("value", [True, 3.0, "3", None, [3], 2**31, 0])
def test_what_is_no_whole_number_in_range_is_refused(value):
    with pytest.raises(InvalidValueError):
        validation.whole_number("x", "y", value, low=1)


@pytest.mark.parametrize("value", [3, 0, 8192, 12])
def test_what_is_no_power_of_two_in_range_is_refused(value):
    with pytest.raises(InvalidValueError):
        validation.power_of_two("x", "y", value, low=1, high=4096)


@pytest.mark.parametrize("value", [0, -1.0, float("nan"), float("inf"), 10**400, True, "1", None])
def test_what_is_no_time_is_refused(value):
    with pytest.raises(InvalidValueError, match="microseconds"):
        validation.positive_time("Timing", "time_us", value)


@pytest.mark.parametrize("value", [-0.1, float("nan"), float("inf"), 10**400, True, "1"])
def test_what_is_no_fraction_is_refused(value):
    with pytest.raises(InvalidValueError, match="a fraction of the time"):
        validation.fraction("Timing", "spread", value)


def test_numpy_numbers_pass_as_times_and_fractions():
    assert validation.positive_time("x", "y", np.float32(1.5)) == 1.5
    assert validation.fraction("x", "y", np.float64(0)) == 0.0


@pytest.mark.parametrize("value", [0, 1, "true", None])
def test_a_flag_is_true_or_false_and_nothing_that_counts_as_it(value):
    with pytest.raises(InvalidValueError, match="expected true or false"):
        validation.flag("MMShape", "tf32", value)
    assert validation.flag("MMShape", "tf32", np.True_) is True


def test_a_near_miss_is_offered_as_the_remedy():
    with pytest.raises(InvalidValueError, match="did you mean 'addmm'"):
        validation.one_of("MMShape", "op", "admm", ("mm", "addmm"))


def test_a_name_matches_whole_and_has_a_limit():
    assert validation.name("x", "y", "ab", "[a-z]+", "letters") == "ab"
    for bad in ("ab\n", "a b", "a" * 201, None, b"ab"):
        with pytest.raises(InvalidValueError):
            validation.name("x", "y", bad, "[a-z]+", "letters")


def test_unknown_and_missing_keys_are_named():
    with pytest.raises(InvalidValueError, match="unknown field 'blok_m'; did you mean 'block_m'"):
        validation.known_keys("config", {"blok_m": 1}, ("block_m",))
    with pytest.raises(InvalidValueError, match="got no field 'block_m'"):
        validation.known_keys("config", {}, ("block_m",), required=("block_m",))
    with pytest.raises(InvalidValueError, match="got list; expected an object"):
        validation.known_keys("config", [], ())


def test_every_refusal_is_one_of_ours_and_a_value_error():
    assert issubclass(InvalidValueError, DiodeError)
    assert issubclass(InvalidValueError, ValueError)
