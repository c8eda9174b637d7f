"""Functions that run a case, in a process of its own: a command, or a compile on the CPU."""

import contextlib
import warnings
from collections.abc import Callable
from typing import Any

import torch

import torch_diode as td
from tests.attack.sandbox import Case
from torch_diode.cli import main
from torch_diode.types.errors import DiodeError


def command(case: Case) -> None:
    """A command line, as a person runs it."""
    main(case.arguments)


def compile_with_files(_: Case) -> None:
    """A compile that the table and the model of the environment decide, whatever is in them."""
    with contextlib.suppress(DiodeError):
        td.enable()
    _check_compile()
    print(td.status())


def compile_with_rule(case: Case) -> None:
    """A compile that a heuristic decides, however bad it is; the user's warning must be ours."""
    td.enable(bad_rule(case.arguments[0]))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _check_compile()
    foreign = [str(w.message) for w in caught if "torch-diode" not in str(w.message)]
    print(td.status(), *foreign, sep="\n")


def _check_compile() -> None:
    torch.manual_seed(0)
    for m, n, k in ((4, 8, 16), (64, 48, 32), (1, 1, 1)):
        a, b = torch.randn(m, k), torch.randn(k, n)
        found = torch.compile(torch.mm)(a, b)
        if not torch.allclose(found, a @ b, atol=1e-4):
            print(f"wrong result of {m}x{n}x{k}")
            raise SystemExit(4)


def several_processes(case: Case) -> None:
    """Processes or threads side by side."""
    from tests.attack import processes

    processes.run(case)


class Shouts(BaseException):
    """No `Exception`, and its text fails too."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


def _raises(fault: BaseException) -> Callable[..., Any]:
    def rule(problem: Any, candidates: Any) -> Any:
        raise fault

    return rule


def _answers(answer: Any) -> Callable[..., Any]:
    return lambda problem, candidates: answer


def _endless(problem: Any, candidates: Any) -> Any:
    while True:
        yield candidates[0]


def _recursive(problem: Any, candidates: Any) -> Any:
    return _recursive(problem, candidates)


def _hangs(problem: Any, candidates: Any) -> Any:
    import threading

    threading.Event().wait()


def _enables(problem: Any, candidates: Any) -> Any:
    td.disable()
    td.enable()


def _compiles(problem: Any, candidates: Any) -> Any:
    torch.compile(torch.mm)(torch.randn(8, 8), torch.randn(8, 8))


def _closes(problem: Any, candidates: Any) -> Any:
    candidates.clear()


def _foreign(problem: Any, candidates: Any) -> Any:
    from torch_diode import Candidate, TritonGEMMConfig

    return [Candidate("triton::mm", TritonGEMMConfig(16, 16, 16)), *candidates]


RULES: dict[str, Callable[..., Any]] = {
    **{type(f).__name__: _raises(f) for f in (
        RuntimeError("a\nb"), SystemExit(3), Shouts(), MemoryError(), RecursionError(),
        StopIteration(), td.DiodeError("x" * 5000), OSError(28, "full"), GeneratorExit(),
        UnicodeDecodeError("utf-8", b"", 0, 1, "\ud800"),
    )},
    **{name: _answers(answer) for name, answer in {
        "number": 3, "text": "aten", "bytes": b"x", "dict": {}, "nan": [float("nan")],
        "class": object, "nested": [[]], "set": {1}, "true": True, "empty": [],
    }.items()},
    "all twice": lambda problem, candidates: [*candidates, *candidates],
    "reversed": lambda problem, candidates: list(candidates)[::-1],
    "too few arguments": lambda: None,
    "attribute": lambda problem, candidates: problem.size,
    "positions": lambda problem, candidates: range(len(candidates)),
    "candidates": lambda problem, candidates: candidates,
    "none": lambda problem, candidates: None,
    **{f.__name__: f for f in (
        _endless, _recursive, _hangs, _enables, _compiles, _closes, _foreign
    )},
}  # fmt: skip
"""Rules by name."""


def bad_rule(name: str) -> td.Heuristic:
    """A heuristic of one of the rules, which gives up after a second."""
    rule = td.heuristic("matmul", name)(RULES[name])
    rule.seconds = 1.0
    return rule
