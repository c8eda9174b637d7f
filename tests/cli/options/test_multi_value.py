import pytest

from torch_diode.cli.options.multi_value import repeat_options


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ([], []),
        (
            ["--operations", "mm", "bmm", "--k", "2", "x"],
            ["--operations", "mm", "--operations", "bmm", "--k", "2", "x"],
        ),
        (["--dtypes", "float16", "-o", "x", "y"], ["--dtypes", "float16", "-o", "x", "y"]),
        (
            ["--operations", "--dtypes", "float16", "float32"],
            ["--operations", "--dtypes", "float16", "--dtypes", "float32"],
        ),
        (
            ["--seed", "1", "collect", "--operations", "mm", "bmm", "-o", "trace"],
            ["--seed", "1", "collect", "--operations", "mm", "--operations", "bmm", "-o", "trace"],
        ),
    ],
)
def test_an_option_with_several_values_is_repeated_for_each(given, meant):
    assert repeat_options(given) == meant


@pytest.mark.parametrize("command", [("explain",), ("--seed", "1", "--device", "cpu", "trace")])
def test_what_is_handed_on_to_a_program_stays_as_it_is(command):
    given = [*command, "program.py", "--dtypes", "float16", "float32"]
    assert repeat_options(given) == given
