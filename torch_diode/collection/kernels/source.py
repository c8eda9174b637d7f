"""Inductor's rendered template text, made into one kernel for all sizes and all configs.

What Inductor renders for symbolic sizes holds one config's constants and branches on the sizes at
run time, which its static kernels fold away. Here the constants become parameters, and the
branches are decided before launch, so that one text serves every config, and each compiled kernel
is the one Inductor would have made for that problem, but for the sizes being arguments.
"""

from __future__ import annotations

import ast
import math
from dataclasses import dataclass

from torch_diode.types.candidate import TritonGEMMConfig
from torch_diode.types.errors import DiodeError
from torch_diode.types.problem import BATCHED, MMShape

CONFIG_PARAMETERS = ("BLOCK_M", "BLOCK_N", "BLOCK_K", "GROUP_M", "ALLOW_TF32", "NUM_SMS")
HINT_PARAMETERS = ("HINT_A", "HINT_B")
UNIT_PARAMETERS = ("UNIT_M", "UNIT_N", "UNIT_K")
SIZE_NAMES = ("ks_m", "ks_n", "ks_k", "ks_b")
"""What the renderer calls M, N, K and the batch; a name with Inductor's prefix for sizes would be
renamed once more."""

_TEMPLATE_SIZES = frozenset({"M", "N", "K", "BATCH"})
_EARLY_EXIT = "False"


class TemplateChangedError(DiodeError):
    """A torch release's template text has something in it that this code does not know."""


@dataclass(frozen=True, order=True)
class SourceKey:
    """All that changes the text Inductor renders; everything else is a parameter."""

    template: str
    op: str
    dtype: str
    transpose_a: bool
    transpose_b: bool
    bias: str
    even_k: bool
    one_step: bool = False
    """Whether K fits a block: with constant sizes the loop over K is then no loop at all, nothing
    is pipelined, and the kernel is another one."""
    ones: str = ""
    """Which of m, n and k are one: Inductor folds such a dimension out of its indexing."""
    index_bits: int = 32

    @property
    def batched(self) -> bool:
        """Whether the operands carry a batch dimension."""
        return self.op in BATCHED


@dataclass(frozen=True)
class TemplateSource:
    """A kernel's text and how to call it: plain data, so that it can go to worker processes.

    `pointers` are the tensor arguments in order; `hint_a` and `hint_b` the conditions, in the
    template's own names, under which the template promises that A's rows (B's columns) are
    contiguous; empty where it has no such promise.
    """

    key: SourceKey
    name: str
    text: str
    pointers: tuple[str, ...]
    hint_a: str
    hint_b: str

    @property
    def sizes(self) -> tuple[str, ...]:
        """The run-time sizes, in argument order."""
        return SIZE_NAMES if self.key.batched else SIZE_NAMES[:3]

    @property
    def splits_batch(self) -> bool:
        """Whether the kernel reads a batch spread over the grid's y and z."""
        return "program_id(2)" in self.text

    def hints_for(self, problem: MMShape, config: TritonGEMMConfig) -> tuple[bool, bool]:
        """What the template's contiguity conditions come to on this problem."""
        names = _names_in_template(problem, config)
        return _holds(self.hint_a, names), _holds(self.hint_b, names)

    @classmethod
    def from_rendered(cls, key: SourceKey, rendered: str) -> TemplateSource:
        """Turn the module text Inductor rendered into a kernel with parameters."""
        function = _kernel_function(rendered)
        editor = _Editor(rendered, function)
        hints = editor.settle_branches()
        if key.one_step:
            editor.make_one_step()
        editor.drop_config_constants()
        editor.insert_sizes(key)
        pointers = _pointers(function, key)
        text = editor.text(pointers, key)
        source = cls(key, function.name, text, pointers, *hints)
        source.hints_for(_SAMPLE, TritonGEMMConfig(16, 16, 16))  # fails here, not in a sweep
        return source


_SAMPLE = MMShape("mm", 64, 64, 64)


def _kernel_function(rendered: str) -> ast.FunctionDef:
    functions = [n for n in ast.parse(rendered).body if isinstance(n, ast.FunctionDef)]
    if len(functions) != 1:
        raise TemplateChangedError(
            f"template text: got {len(functions)} functions; expected one kernel; "
            "this torch release renders templates differently, use --method feedback"
        )
    return functions[0]


def _pointers(function: ast.FunctionDef, key: SourceKey) -> tuple[str, ...]:
    names = tuple(a.arg for a in function.args.args if a.arg not in SIZE_NAMES)
    expected = ("in_ptr0",) * (key.bias != "none") + ("arg_A", "arg_B", "out_ptr0")
    if names != expected:
        raise TemplateChangedError(
            f"template {key.template}: got arguments {', '.join(names)}; expected "
            f"{', '.join(expected)}; this torch release's template is not known, "
            "use --method feedback"
        )
    return names


def _names_in_template(problem: MMShape, config: TritonGEMMConfig) -> dict[str, int]:
    m, n, k = problem.M, problem.N, problem.K
    am, ak = (1, m) if problem.transpose_a else (k, 1)
    bk, bn = (1, k) if problem.transpose_b else (n, 1)
    names = {"M": m, "N": n, "K": k, "BATCH": problem.B}
    names |= {"stride_am": am, "stride_ak": ak, "stride_aq": m * k}
    names |= {"stride_bk": bk, "stride_bn": bn, "stride_bq": k * n}
    blocks = {"BLOCK_M": config.block_m, "BLOCK_N": config.block_n, "BLOCK_K": config.block_k}
    return names | blocks


def _holds(condition: str, names: dict[str, int]) -> bool:
    """Evaluate one of the template's conditions: torch's own text, in names we gave values."""
    if not condition:
        return False
    try:
        return bool(eval(condition, {"__builtins__": {}}, dict(names)))  # noqa: S307 as above
    except NameError as error:
        raise TemplateChangedError(
            f"template condition {condition!r}: got {error}; expected sizes, strides and blocks; "
            "this torch release's template is not known, use --method feedback"
        ) from error


def _names(node: ast.AST) -> list[ast.Name]:
    return [n for n in ast.walk(node) if isinstance(n, ast.Name)]


def _bound(node: ast.AST) -> ast.AST:
    """What says how often a loop over K runs: its range, or a number of steps worked out before
    it, as torch 2.9's TMA template does."""
    if isinstance(node, ast.For):
        return node.iter
    if isinstance(node, ast.Assign) and ast.unparse(node.value) == "tl.cdiv(K, BLOCK_K)":
        return node.value
    return ast.Pass()


def _starts_at(loop: ast.For, bound: ast.Name) -> bool:
    return isinstance(loop.iter, ast.Call) and loop.iter.args[0] is bound


class _Editor:
    """Edits the rendered text by line and column, so that all else stays Inductor's own."""

    def __init__(self, rendered: str, function: ast.FunctionDef) -> None:
        self._lines = rendered.splitlines()
        self._function = function

    def settle_branches(self) -> tuple[str, str]:
        """Replace every branch on sizes by a constant; returns the two hints' conditions."""
        hints = {"HINT_A": "", "HINT_B": ""}
        for node in ast.walk(self._function):
            if not isinstance(node, ast.If):
                continue
            names = {n.id for n in ast.walk(node.test) if isinstance(n, ast.Name)}
            if not any(n in _TEMPLATE_SIZES or n.startswith("stride_") for n in names):
                continue
            constant = self._constant_for(node, names)
            if constant != _EARLY_EXIT:
                hints[constant] = ast.unparse(node.test)
            self._replace(node.test, constant)
        return hints["HINT_A"], hints["HINT_B"]

    def _constant_for(self, node: ast.If, names: set[str]) -> str:
        """A problem of size zero is never launched; the other two branches are hints."""
        if isinstance(node.body[0], ast.Return):
            return _EARLY_EXIT
        operands = {n[len("stride_")] for n in names if n.startswith("stride_")}
        if operands == {"a"}:
            return "HINT_A"
        if operands == {"b"}:
            return "HINT_B"
        raise TemplateChangedError(
            f"template text: got a branch on {ast.unparse(node.test)!r}; expected an early exit "
            "or a contiguity hint for A or B; this torch release's template is not known, "
            "use --method feedback"
        )

    def _replace(self, node: ast.expr, text: str) -> None:
        if node.end_lineno != node.lineno or node.end_col_offset is None:
            raise TemplateChangedError(
                f"template text: got a condition over several lines ({ast.unparse(node)!r}); "
                "expected one line; use --method feedback"
            )
        line = self._lines[node.lineno - 1]
        self._lines[node.lineno - 1] = line[: node.col_offset] + text + line[node.end_col_offset :]

    def make_one_step(self) -> None:
        """Have the loop over K run as if K were a block: with bounds that are constants, once."""
        bounds = [
            (node, name)
            for node in ast.walk(self._function)
            for name in _names(_bound(node))
            if name.id == "K"
        ]
        if len(bounds) != 1:
            raise TemplateChangedError(
                f"template text: got {len(bounds)} loops over K; expected one; this torch "
                "release's template is not known, use --method feedback"
            )
        ((node, bound),) = bounds
        if isinstance(node, ast.For) and _starts_at(node, bound):
            # It counts down from K, and what is left of it is the mask's bound.
            counter = ast.unparse(node.target)
            used = [n for part in node.body for n in _names(part) if n.id == counter]
            for name in sorted(used, key=lambda n: (n.lineno, -n.col_offset)):
                self._replace(name, "K")
        self._replace(bound, "BLOCK_K")

    def _constants(self) -> list[ast.AnnAssign]:
        """The header: `BLOCK_M : tl.constexpr = 64` and so on, first in the function."""
        header = []
        for node in self._function.body:
            if not isinstance(node, ast.AnnAssign):
                break
            header.append(node)
        return header

    def drop_config_constants(self) -> None:
        """Take out the constants that are parameters now; the lines stay, empty."""
        for node in self._constants():
            if isinstance(node.target, ast.Name) and node.target.id in CONFIG_PARAMETERS:
                self._lines[node.lineno - 1] = ""

    def insert_sizes(self, key: SourceKey) -> None:
        """Make each size of its units, after the header.

        A static kernel knows how its sizes divide, and that decides vector widths and whether
        loads can be pipelined at all. Passing a size as so many units of a constant tells the
        compiler exactly that much; Triton's own specialisation only knows multiples of 16.
        """
        lines = [
            f"    ks_{letter} = (units_{letter} * UNIT_{letter.upper()}).to(INDEX_DTYPE)"
            for letter in "mnk"
        ]
        if key.batched:
            lines.append("    ks_b = units_b.to(INDEX_DTYPE)")
        last = self._constants()[-1].lineno
        self._lines[last - 1] += "\n" + "\n".join(lines)

    def text(self, pointers: tuple[str, ...], key: SourceKey) -> str:
        """The finished module: the kernel alone, with its new parameters."""
        units = ["units_m", "units_n", "units_k"] + ["units_b"] * key.batched
        constants = [*UNIT_PARAMETERS, *CONFIG_PARAMETERS, *HINT_PARAMETERS]
        parameters = [*pointers, *units, *(f"{c}: tl.constexpr" for c in constants)]
        start = self._function.body[0].lineno - 1
        body = [line for line in "\n".join(self._lines[start:]).splitlines() if line.strip()]
        head = [
            "import triton",
            "import triton.language as tl",
            "",
            f"@triton.jit(do_not_specialize={units})",
            f"def {self._function.name}({', '.join(parameters)}):",
        ]
        return "\n".join([*head, *body]) + "\n"


def unit_of(size: int, itemsize: int) -> int:
    """The largest power of two that divides `size`, up to 16 bytes' worth; 0 for a size of one.

    16 bytes is the widest load there is: more than that changes no instruction.
    """
    return 0 if size == 1 else math.gcd(size, 16 // itemsize)
