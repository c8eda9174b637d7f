"""Conversion of Inductor's rendered template text into one kernel for all sizes and configs.

The text rendered for symbolic sizes contains one config's constants and branches on the sizes,
which static kernels fold away. Here the constants become parameters, and the branches are decided
before launch: one text serves every config, and each compiled kernel is the one Inductor would
have compiled for that problem, except that the sizes are arguments.
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
"""Names of M, N, K and the batch in the rendered text; Inductor would rename symbols with its own
prefix for sizes."""

_TEMPLATE_SIZES = frozenset({"M", "N", "K", "BATCH"})
_EARLY_EXIT = "False"


class TemplateChangedError(DiodeError):
    """The template text of this torch release contains something this code does not support."""


@dataclass(frozen=True, order=True)
class SourceKey:
    """Everything that changes the text Inductor renders; the rest are parameters."""

    template: str
    op: str
    dtype: str
    transpose_a: bool
    transpose_b: bool
    bias: str
    even_k: bool
    one_step: bool = False
    """True if K fits a block: static kernels then have no loop over K and no pipelining."""
    ones: str = ""
    """The letters of m, n and k that are one: Inductor removes them from its indexing."""
    index_bits: int = 32

    @property
    def batched(self) -> bool:
        """True if the operands carry a batch dimension."""
        return self.op in BATCHED


@dataclass(frozen=True)
class TemplateSource:
    """A kernel's text and its parameters, as plain data for worker processes.

    `pointers` are the tensor arguments in order; `hint_a` and `hint_b` the conditions, in the
    template's own names, under which the template assumes that A's rows (B's columns) are
    contiguous; empty if it never does.
    """

    key: SourceKey
    name: str
    text: str
    pointers: tuple[str, ...]
    hint_a: str
    hint_b: str

    @property
    def sizes(self) -> tuple[str, ...]:
        """Run-time sizes, in argument order."""
        return SIZE_NAMES if self.key.batched else SIZE_NAMES[:3]

    @property
    def splits_batch(self) -> bool:
        """True if the kernel supports a batch spread over the grid's y and z."""
        return "program_id(2)" in self.text

    def hints_for(self, problem: MMShape, config: TritonGEMMConfig) -> tuple[bool, bool]:
        """Values of the template's contiguity conditions for this problem."""
        names = _names_in_template(problem, config)
        return _holds(self.hint_a, names), _holds(self.hint_b, names)

    @classmethod
    def from_rendered(cls, key: SourceKey, rendered: str) -> TemplateSource:
        """Convert the module text Inductor rendered."""
        function = _kernel_function(rendered)
        editor = _Editor(rendered, function)
        hints = editor.replace_branches()
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
    """Evaluate one of the template's conditions, which is torch's own text."""
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
    """Expression for the number of steps of the loop over K: its range, or a number computed before
    the loop, as in torch 2.9's TMA template."""
    if isinstance(node, ast.For):
        return node.iter
    if isinstance(node, ast.Assign) and ast.unparse(node.value) == "tl.cdiv(K, BLOCK_K)":
        return node.value
    return ast.Pass()


def _starts_at(loop: ast.For, bound: ast.Name) -> bool:
    return isinstance(loop.iter, ast.Call) and loop.iter.args[0] is bound


class _Editor:
    """Edits the rendered text by line and column and leaves the rest unchanged."""

    def __init__(self, rendered: str, function: ast.FunctionDef) -> None:
        self._lines = rendered.splitlines()
        self._function = function

    def replace_branches(self) -> tuple[str, str]:
        """Replace every branch on sizes by a constant; return the conditions of the two hints."""
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
        """Constant for a branch: False for the early exit of empty problems, or a hint."""
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
        """Replace the bound of the loop over K by BLOCK_K, so that it runs once."""
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
            # The loop counts down from K, and the counter is the bound of the mask.
            counter = ast.unparse(node.target)
            used = [n for part in node.body for n in _names(part) if n.id == counter]
            for name in sorted(used, key=lambda n: (n.lineno, -n.col_offset)):
                self._replace(name, "K")
        self._replace(bound, "BLOCK_K")

    def _constants(self) -> list[ast.AnnAssign]:
        """Header of the function: `BLOCK_M : tl.constexpr = 64` and so on."""
        header = []
        for node in self._function.body:
            if not isinstance(node, ast.AnnAssign):
                break
            header.append(node)
        return header

    def drop_config_constants(self) -> None:
        """Blank the lines of constants that have become parameters."""
        for node in self._constants():
            if isinstance(node.target, ast.Name) and node.target.id in CONFIG_PARAMETERS:
                self._lines[node.lineno - 1] = ""

    def insert_sizes(self, key: SourceKey) -> None:
        """Compute each size from its units, after the header.

        In a static kernel, the alignment of the sizes decides vector widths and whether loads can
        be pipelined. A size passed as a number of constant units gives the compiler exactly that
        information; Triton's own specialisation only covers multiples of 16.
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
        """Text of the module: the kernel with its new parameters."""
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
    """Largest power of two that divides `size`, up to 16 bytes, the widest load; 0 for size one."""
    return 0 if size == 1 else math.gcd(size, 16 // itemsize)
