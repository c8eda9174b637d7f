"""Kernels of a sweep: compiled once per config and kind of problem, launched on any shape.

A `KernelSpec` names one compiled kernel; all problems that map to the same spec share it. It
contains what changes the code of Inductor's static kernels: layout, dtype, EVEN_K, whether K fits a
block, the alignment of the sizes. The template's text comes from a provider that is passed in
(`integration.capture.template_source.template_source`), since this package does not import
Inductor.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import linecache
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch

from torch_diode.candidates.gpu.eligibility import TMA_BYTES, TRITON_DTYPES, tma_aligned
from torch_diode.collection.kernels.operands import check_tensor
from torch_diode.collection.kernels.outcome import KernelInfeasibleError
from torch_diode.collection.kernels.source import (
    CONFIG_PARAMETERS,
    HINT_PARAMETERS,
    UNIT_PARAMETERS,
    SourceKey,
    TemplateSource,
    unit_of,
)
from torch_diode.types.candidate import Candidate, TritonGEMMConfig
from torch_diode.types.errors import InvalidValueError
from torch_diode.types.problem import DTYPE_BYTES, MMShape

MM, BMM, PERSISTENT_TMA = "triton::mm", "triton::bmm", "triton::mm_persistent_tma"
OPS_OF_TEMPLATE = {
    MM: ("mm", "addmm"),
    PERSISTENT_TMA: ("mm", "addmm"),
    BMM: ("bmm", "baddbmm"),
}
_INT32_MAX = 2**31 - 1
_MAX_GRID_Y = 65535

SourceProvider = Callable[[SourceKey], TemplateSource]


@dataclass(frozen=True, order=True)
class KernelSpec:
    """One compiled kernel.

    `units` are the alignments of M, N and K (see `unit_of`) as far as they matter in this layout;
    `hints` tell whether the template may assume contiguous rows of A and columns of B.
    """

    source: SourceKey
    config: TritonGEMMConfig
    units: tuple[int, int, int]
    hints: tuple[bool, bool] = (False, False)
    tf32: bool = False
    num_sms: int = 0

    @property
    def constants(self) -> dict[str, int | bool]:
        """The kernel's compile-time parameters, in argument order."""
        c = self.config
        values = (c.block_m, c.block_n, c.block_k, c.group_m, self.tf32, self.num_sms)
        return {
            **dict(zip(UNIT_PARAMETERS, self.units, strict=True)),
            **dict(zip(CONFIG_PARAMETERS, values, strict=True)),
            **dict(zip(HINT_PARAMETERS, self.hints, strict=True)),
        }

    @property
    def options(self) -> dict[str, int]:
        """Options of the compiler, which are not parameters of the kernel."""
        return {"num_warps": self.config.num_warps, "num_stages": self.config.num_stages}


class KernelLibrary:
    """All kernels of a sweep, and the mapping of problems and candidates to them."""

    def __init__(self, provider: SourceProvider, num_sms: int) -> None:
        self._provider = provider
        self._num_sms = num_sms
        self._kernels: dict[KernelSpec, SweepKernel] = {}

    def spec_for(self, problem: MMShape, candidate: Candidate) -> KernelSpec:
        """Spec of the kernel that runs `candidate` on `problem`; raises if there is none."""
        config = candidate.triton
        if config is None:
            raise InvalidValueError(
                f"kernel: got candidate {candidate}; expected a Triton template with a config; "
                "time vendor kernels by calling torch"
            )
        key = source_key(problem, candidate.template, config)
        return specialise(self._provider(key), problem, config, self._num_sms)

    def kernel_for(self, spec: KernelSpec) -> SweepKernel:
        """The kernel of a spec."""
        if spec not in self._kernels:
            self._kernels[spec] = SweepKernel(self._provider(spec.source), spec)
        return self._kernels[spec]

    def jobs(self, specs: Iterable[KernelSpec]) -> list[tuple[TemplateSource, KernelSpec]]:
        """Jobs for `CompileAhead` that compile `specs` in other processes."""
        return [(self._provider(spec.source), spec) for spec in specs]


def source_key(problem: MMShape, template: str, config: TritonGEMMConfig) -> SourceKey:
    """Key of the text that runs `problem`; raises if the template does not support it."""
    _check_supported(problem, template)
    if template == PERSISTENT_TMA:
        _check_tma(problem)
    return SourceKey(
        template=template,
        op=problem.op,
        dtype=problem.dtype,
        transpose_a=problem.transpose_a,
        transpose_b=problem.transpose_b,
        bias=problem.bias,
        # The TMA template ignores EVEN_K: one kernel instead of two.
        even_k=template != PERSISTENT_TMA and problem.K % config.block_k == 0,
        one_step=config.block_k >= problem.K,
        ones="".join(letter for letter in "mnk" if getattr(problem, letter.upper()) == 1),
        index_bits=_index_bits(problem),
    )


def specialise(
    source: TemplateSource, problem: MMShape, config: TritonGEMMConfig, num_sms: int
) -> KernelSpec:
    """Spec of the kernel that runs a problem.

    Only what changes the compiled code is kept, so that few kernels serve many problems: the
    alignment of M if A is read along M, that of K if an operand is read along K (with a size of
    one, any dimension may be), and a hint only if that operand is read along the hinted dimension
    and its size is odd, since otherwise the alignment implies it. Without a loop over K, the number
    of stages makes no difference. (The tests compare the compiled code.)
    """
    persistent = source.key.template == PERSISTENT_TMA
    itemsize = DTYPE_BYTES[problem.dtype]
    sizes = (problem.M, problem.N, problem.K)
    m, n, k = (max(unit_of(size, itemsize), 1) for size in sizes)
    reads_along_k = not problem.transpose_a or problem.transpose_b
    if persistent or not (problem.transpose_a or source.key.ones):
        m = 1
    if persistent or not (reads_along_k or source.key.ones):
        k = 1
    may_hint = (problem.transpose_a and m == 1, not problem.transpose_b and n == 1)
    hints = source.hints_for(problem, config) if any(may_hint) else (False, False)
    if source.key.one_step and not persistent:
        config = replace(config, num_stages=1)
    return KernelSpec(
        source=source.key,
        config=config,
        units=(m, n, k),
        hints=(hints[0] and may_hint[0], hints[1] and may_hint[1]),
        tf32=problem.tf32,
        num_sms=num_sms if persistent else 0,
    )


def _check_supported(problem: MMShape, template: str) -> None:
    ops = OPS_OF_TEMPLATE.get(template, ())
    if problem.op not in ops:
        raise KernelInfeasibleError(
            f"{template}: got op {problem.op}; expected {' or '.join(ops) or 'a known template'}"
        )
    if problem.dtype not in TRITON_DTYPES or problem.out_dtype != problem.dtype:
        raise KernelInfeasibleError(
            f"{template}: got {problem.dtype} to {problem.out_dtype}; expected one of "
            f"{', '.join(TRITON_DTYPES)} to itself; use --method feedback"
        )


def _check_tma(problem: MMShape) -> None:
    """Raise for problems Inductor cannot run with TMA, even if this kernel could."""
    if not tma_aligned(problem):
        raise KernelInfeasibleError(
            f"{PERSISTENT_TMA}: got {problem}; expected rows of A and B of a multiple of "
            f"{TMA_BYTES} bytes, and more than one; leave this template out for this problem"
        )


def _index_bits(problem: MMShape) -> int:
    largest = max(problem.M * problem.K, problem.K * problem.N, problem.M * problem.N)
    return 32 if problem.B * largest <= _INT32_MAX else 64


@functools.cache
def jit_function(source: TemplateSource) -> Any:
    """The Triton function of a source.

    Triton reads a function's text through `inspect`, which uses `linecache`: the text is put there
    under a name with its digest, the same in every process, and no file is written.
    """
    digest = hashlib.sha256(source.text.encode()).hexdigest()[:16]
    filename = f"<torch-diode {source.name} {digest}>"
    lines = source.text.splitlines(keepends=True)
    linecache.cache[filename] = (len(source.text), None, lines, filename)
    namespace: dict[str, Any] = {"__name__": f"{__name__}.{source.name}"}
    exec(compile(source.text, filename, "exec"), namespace)  # noqa: S102 torch's own template
    return namespace[source.name]


class SweepKernel:
    """The kernel of one spec; it runs every problem that maps to the spec."""

    def __init__(self, source: TemplateSource, spec: KernelSpec) -> None:
        self.source = source
        self.spec = spec
        self._function = jit_function(source)

    def load(
        self,
        a: torch.Tensor,
        b: torch.Tensor,
        out: torch.Tensor,
        bias: torch.Tensor | None = None,
    ) -> Any:
        """Load Triton's compiled kernel on the device, for any problem of this spec.

        Raises if the tensors are not of such a problem, or if the kernel does not fit the chip.
        """
        problem = self._problem(a, b, out, bias)
        self._provide_scratch(a)
        compiled = self._function.warmup(
            *self.arguments(problem, a, b, out, bias),
            grid=self.grid(problem),
            **self.spec.constants,
            **self.spec.options,
        )
        with _infeasible_if_too_large(self.spec):
            _ = compiled.run  # Triton loads a kernel at the first access to `run`
        return compiled

    def grid(self, problem: MMShape) -> tuple[int, int, int]:
        """Launch grid, as in the template's own grid function."""
        config = self.spec.config
        tiles = -(-problem.M // config.block_m) * -(-problem.N // config.block_n)
        if self.spec.source.template == PERSISTENT_TMA:
            return min(self.spec.num_sms, tiles), 1, 1
        if not self.spec.source.batched:
            return tiles, 1, 1
        z = -(-problem.B // _MAX_GRID_Y)
        if z > 1 and not self.source.splits_batch:
            raise KernelInfeasibleError(
                f"{BMM}: got a batch of {problem.B}; expected at most {_MAX_GRID_Y} with this "
                "torch release"
            )
        return tiles, -(-problem.B // z), z

    def _problem(
        self, a: torch.Tensor, b: torch.Tensor, out: torch.Tensor, bias: torch.Tensor | None
    ) -> MMShape:
        """The problem of these tensors; raises if it does not map to this spec.

        On a problem of another spec, the kernel's result would be wrong or the device would fault.
        """
        key = self.spec.source
        *batch, m, k = a.shape
        n = b.shape[-1]
        problem = MMShape(
            key.op,
            *(m, n, k),
            B=batch[0] if batch else 1,
            dtype=str(a.dtype).removeprefix("torch."),
            transpose_a=key.transpose_a,
            transpose_b=key.transpose_b,
            tf32=self.spec.tf32,
            bias=key.bias,
        )
        lead = tuple(batch)
        check_tensor("A", a, (*lead, m, k), key.transpose_a, a.dtype)
        check_tensor("B", b, (*lead, k, n), key.transpose_b, a.dtype)
        check_tensor("out", out, (*lead, m, n), False, a.dtype)
        if (bias is None) != (key.bias == "none"):
            raise InvalidValueError(f"bias: got {bias is not None}; expected {key.bias} for {key}")
        if bias is not None:
            shape = (n,) if key.bias == "vector" else (*lead, m, n)
            check_tensor("bias", bias, shape, False, a.dtype)
        spec = None
        if source_key(problem, key.template, self.spec.config) == key:
            spec = specialise(self.source, problem, self.spec.config, self.spec.num_sms)
        if spec != self.spec:
            raise InvalidValueError(
                f"kernel: got problem {problem}; expected one that maps to {self.spec}; "
                "use KernelLibrary.spec_for"
            )
        return problem

    def arguments(
        self,
        problem: MMShape,
        a: torch.Tensor,
        b: torch.Tensor,
        out: torch.Tensor,
        bias: torch.Tensor | None,
    ) -> tuple[Any, ...]:
        """Run-time arguments: tensors, then sizes in units. Unchecked: see `load`."""
        tensors = (a, b, out) if bias is None else (bias, a, b, out)
        sizes = (problem.M, problem.N, problem.K)
        units = [size // unit for size, unit in zip(sizes, self.spec.units, strict=True)]
        return (*tensors, *units, problem.B) if self.spec.source.batched else (*tensors, *units)

    def _provide_scratch(self, like: torch.Tensor) -> None:
        """Set the allocator of the memory for TMA descriptors made on the device."""
        if self.spec.source.template != PERSISTENT_TMA:
            return
        import triton

        device = like.device
        triton.set_allocator(
            lambda size, alignment, stream: torch.empty(size, device=device, dtype=torch.int8)
        )


@contextlib.contextmanager
def _infeasible_if_too_large(spec: KernelSpec) -> Iterator[None]:
    from triton.runtime.errors import OutOfResources

    try:
        yield
    except OutOfResources as error:
        raise KernelInfeasibleError(f"{spec.source.template} {spec.config}: {error}") from error
