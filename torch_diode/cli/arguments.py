"""Options that take several values, `--operations mm addmm bmm`, as the tutorial writes them.

The parser underneath wants the option repeated for each value; this repeats it.
"""

from __future__ import annotations

from collections.abc import Sequence

SEVERAL = frozenset({"--dtypes", "--file-extensions", "--input-files", "--operations"})


def repeat_options(arguments: Sequence[str]) -> list[str]:
    """`--operations mm bmm` as `--operations mm --operations bmm`."""
    result: list[str] = []
    option = ""
    for argument in arguments:
        if argument.startswith("-"):
            option = argument if argument in SEVERAL else ""
            result.append(argument)
        elif option and result[-1] != option:
            result += [option, argument]
        else:
            result.append(argument)
    return result
