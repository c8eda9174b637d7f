import pytest

from torch_diode.types.errors import InvalidValueError
from workflows.measuring.jobs import Failed, catch_job_errors, one_line


def test_an_error_becomes_a_result_in_one_line():
    assert catch_job_errors(int)("7") == 7
    assert catch_job_errors(int)("x\ny") == Failed(
        r"ValueError: invalid literal for int() with base 10: 'x\ny'"
    )
    assert one_line(InvalidValueError("first\nsecond")) == "InvalidValueError: first"
    assert len(one_line(RuntimeError("x" * 1000), 50)) == 50


def test_an_error_of_the_check_after_a_failed_job_propagates():
    def look():
        raise RuntimeError("an error of the GPU stays")

    assert catch_job_errors(int, look)("7") == 7
    with pytest.raises(RuntimeError, match="stays"):
        catch_job_errors(int, look)("x")
