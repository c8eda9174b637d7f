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
    "--threads": str.isdecimal,
}
"""The options, and what can be one more value: anything else is the command's own argument."""
_TAKE_A_VALUE = ("--format", "--seed", "--device")
_RUN_A_PROGRAM = ("explain", "trace")


def repeat_options(arguments: Sequence[str]) -> list[str]:
    """`--operations mm bmm` as `--operations mm --operations bmm`; but what a command hands on to a
    program stays as it is."""
    if _command(arguments) in _RUN_A_PROGRAM:
        return list(arguments)
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


def _command(arguments: Sequence[str]) -> str:
    """The first word that is neither a global option nor its value."""
    before = ""
    for argument in arguments:
        if not argument.startswith("-") and before not in _TAKE_A_VALUE:
            return argument
        before = argument
    return ""
