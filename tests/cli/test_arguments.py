from __future__ import annotations

import pytest

from torch_diode.cli.arguments import repeat_options


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ([], []),
        (["stats", "x"], ["stats", "x"]),
        (["--operations", "mm"], ["--operations", "mm"]),
        (
            ["--operations", "mm", "bmm", "--k", "2", "x"],
            ["--operations", "mm", "--operations", "bmm", "--k", "2", "x"],
        ),
        (
            ["--input-files", "a", "b", "c"],
            ["--input-files", "a", "--input-files", "b", "--input-files", "c"],
        ),
        (["--dtypes", "float16", "-o", "x", "y"], ["--dtypes", "float16", "-o", "x", "y"]),
        (
            ["--operations", "--dtypes", "float16", "float32"],
            ["--operations", "--dtypes", "float16", "--dtypes", "float32"],
        ),
        (
            ["stats", "--operations", "mm", "bmm", "data.parquet"],
            ["stats", "--operations", "mm", "--operations", "bmm", "data.parquet"],
        ),
    ],
)
def test_an_option_with_several_values_is_repeated_for_each(given, meant):
    assert repeat_options(given) == meant
