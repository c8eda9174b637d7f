"""Options that take several values, `--operations mm addmm bmm`, as the tutorial writes them.

The parser underneath wants the option repeated for each value; this repeats it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch_diode.types.problem import DTYPES, OPS

SEVERAL: dict[str, Callable[[str], bool]] = {
    "--dtypes": DTYPES.__contains__,
    "--file-extensions": lambda value: value.lstrip(".").isalnum(),
    "--input-files": bool,
    "--operations": OPS.__contains__,
}
"""The options, and what can be one more value: anything else is the command's own argument."""


def repeat_options(arguments: Sequence[str]) -> list[str]:
    """`--operations mm bmm` as `--operations mm --operations bmm`."""
    result: list[str] = []
    option = ""
    for argument in arguments:
        if argument.startswith("-"):
            option = argument if argument in SEVERAL else ""
            result.append(argument)
        elif option and result[-1] != option and SEVERAL[option](argument):
            result += [option, argument]
        else:
            result.append(argument)
    return result
