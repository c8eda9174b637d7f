"""Questions of Inductor's beyond matmul kernels, as a user's function gets them: what Inductor
knows, and its own answer.

Each names its `decision`, which `@heuristic` takes, and within that what it `asks`. A question
checks its answer: one that Inductor cannot compile must not reach it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar

from torch_diode.types.candidate import ATEN, CPP_ATTENTION, KernelConfig
from torch_diode.types.errors import InvalidValueError
from torch_diode.types.hardware import Hardware

if TYPE_CHECKING:
    from torch_diode.candidates.gpu.attention import Table

LONGEST_PERSISTENT = 16 * 1024
"""The longest row that Inductor itself ever keeps in registers."""
NO_MASK, KEY_MASK, FULL_MASK = "none", "keys", "full"
_MAX_BLOCK = 4096
_MAX_STAGES = 8
_WARPS = (1, 2, 4, 8, 16, 32)


@dataclass(frozen=True)
class Question:
    """One question of Inductor's; subclasses say which."""

    decision: ClassVar[str]
    """The name by which `@heuristic` asks for questions of this kind."""
    asks: ClassVar[str]
    """What is asked, among the questions of that decision."""

    hardware: Hardware
    default: Any
    """Inductor's own answer."""

    def checked(self, answer: Any) -> Any:
        """The answer in Inductor's form; raises for one it cannot use."""
        if not isinstance(answer, bool):
            raise self._refused(answer, "True, False or None")
        return answer

    def fitting(self, answer: Any) -> Any:
        """The answer without what cannot run on this hardware."""
        return answer

    def __str__(self) -> str:
        hidden = ("hardware", "default")
        shown = [(f.name, getattr(self, f.name)) for f in fields(self) if f.name not in hidden]
        return " ".join([self.asks, *(f"{name}={_text(value)}" for name, value in shown)])

    def _refused(self, answer: object, expected: str) -> InvalidValueError:
        return InvalidValueError(f"{self.asks}: got {answer!r:.80}; expected {expected}")

    def _number(self, answer: object, low: int, high: int) -> int:
        if not isinstance(answer, int) or isinstance(answer, bool) or not low <= answer <= high:
            raise self._refused(answer, f"a whole number from {low} to {high}, or None")
        return answer


def _text(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


@dataclass(frozen=True)
class PersistentReduction(Question):
    """Keep a row in registers, read once, or loop over it in blocks: a Triton kernel's choice."""

    decision = "reduction"
    asks = "persistent"

    outputs: int
    length: int
    """Elements reduced to one output; the hint where it is symbolic."""
    bounded: bool
    """True if the length is certain not to exceed what registers can hold."""
    layout: str
    """`inner` where a row is contiguous, `outer`, `outer_tiny` or `default`."""
    dtypes: tuple[str, ...]
    """Of the buffers it writes."""
    cooperative: bool

    def checked(self, answer: Any) -> bool:
        """Refuses rows too long for registers."""
        kept: bool = super().checked(answer)
        if kept and not self.bounded:
            raise self._refused(answer, f"False or None for rows above {LONGEST_PERSISTENT}")
        return kept


@dataclass(frozen=True)
class CooperativeReduction(Question):
    """Let several thread blocks share one output and synchronise, in a single kernel."""

    decision = "reduction"
    asks = "cooperative"

    outputs: int
    length: int


@dataclass(frozen=True)
class ReductionSplit(Question):
    """The number of parts that a reduction of few outputs is split into, for two kernels; 1 for
    one."""

    decision = "reduction"
    asks = "split"

    outputs: int
    length: int
    inner: bool
    """True if a row is contiguous."""

    def checked(self, answer: Any) -> int:
        """Refuses more parts than there are elements."""
        return self._number(answer, 1, max(1, self.length))


@dataclass(frozen=True)
class Node:
    """What one node of Inductor's scheduler computes: ops fused so far, to become one kernel."""

    kind: str
    """`pointwise`, `reduction`, `template`, `extern` or `foreach`."""
    ops: tuple[str, ...]
    """The aten ops it comes from, by name, such as `relu`, sorted."""
    outputs: int
    """Elements of its largest iteration space, without the reduced ones."""
    length: int
    """Elements reduced to one output; 1 if it reduces nothing."""
    dtypes: tuple[str, ...]
    """Of the buffers it writes."""

    def __str__(self) -> str:
        return f"{self.kind}({', '.join(self.ops)}) {self.outputs}x{self.length}"


@dataclass(frozen=True)
class Fusion(Question):
    """Let two nodes become one kernel. False keeps them apart; True only lifts Inductor's
    objections of speed and memory: what correctness needs is checked all the same."""

    decision = "fusion"
    asks = "fuse"

    first: Node
    second: Node
    shared_bytes: int
    """Inductor's estimate of the memory traffic saved."""
    producer: bool
    """True if the second node reads what the first computes."""


@dataclass(frozen=True)
class FusionPriority(Question):
    """The priority of fusing two nodes, where fusions exclude one another: higher comes first, and
    Inductor's own score decides between equals."""

    decision = "fusion"
    asks = "priority"

    first: Node
    second: Node

    def checked(self, answer: Any) -> int:
        """Any whole number within reason."""
        return self._number(answer, -(10**9), 10**9)


@dataclass(frozen=True)
class ConfigQuestion(Question):
    """The configs among which max-autotune chooses a kernel; an answer may leave some out, reorder
    them and change their values."""

    default: tuple[KernelConfig, ...]

    def checked(self, answer: Any) -> tuple[KernelConfig, ...]:
        """Refuses configs that are no kernels of this template."""
        if isinstance(answer, (str, bytes, KernelConfig)) or not isinstance(answer, Iterable):
            raise self._refused(answer, "a list of configs, or None")
        configs = tuple(answer)
        if not configs:
            raise self._refused(answer, "at least one config, or None")
        for config in configs:
            self._check_config(config)
        return tuple(dict.fromkeys(configs))

    def _check_config(self, config: object) -> None:
        own = self.default[0] if self.default else None
        if not isinstance(config, KernelConfig) or own is None:
            raise self._refused(config, "configs such as those of `default`")
        if [name for name, _ in config.blocks] != [name for name, _ in own.blocks]:
            raise self._refused(config, f"blocks {', '.join(name for name, _ in own.blocks)}")
        for name, size in config.blocks:
            low = min(16, *(each[name] for each in self.default))
            power = isinstance(size, int) and size > 0 and size & (size - 1) == 0
            if not power or not low <= size <= _MAX_BLOCK:
                raise self._refused(config, f"{name} as a power of two, {low} to {_MAX_BLOCK}")
        if config.num_warps not in _WARPS or config.num_stages not in range(1, _MAX_STAGES + 1):
            raise self._refused(config, f"1 to {_MAX_STAGES} stages, and warps of {_WARPS}")


@dataclass(frozen=True)
class Convolution(ConfigQuestion):
    """The configs of a convolution's Triton template."""

    decision = "convolution"
    asks = "convolution"

    rows: int
    """Batch times output positions, as Inductor counts them: those of the input."""
    output_channels: int
    input_channels: int
    """Per group."""


@dataclass(frozen=True)
class DepthwiseConvolution(ConfigQuestion):
    """The configs of the template of one-dimensional depthwise convolutions; Inductor asks without
    sizes."""

    decision = "convolution"
    asks = "depthwise"


@dataclass(frozen=True)
class Attention(ConfigQuestion):
    """The configs of a flex attention kernel: a single one runs without a benchmark, and there is
    no other kernel to fall back to."""

    decision = "attention"

    head_dim: int
    dtype: str
    queries: int
    """Length of the sequence; 0 where it is known only at run time."""
    tf32: bool = False
    """True if float32 products may be computed in TF32."""
    value_dim: int = 0
    """Head dimension of the values; 0 for the same."""
    score_tensors: tuple[int, ...] = ()
    """Bytes per element of the tensors that the function of scores reads, such as a bias; without
    those that have fewer elements than there are keys."""
    mask_tensors: tuple[int, ...] = ()
    """The same of the function of the mask."""

    def fits(self, config: KernelConfig) -> bool | None:
        """True if a kernel of this config was compiled and fits the chip, False if it does not
        fit. None if it was never compiled, or only the functions' tensors can tell."""
        from torch_diode.candidates.gpu.attention import fits_chip, tile_of

        row = self._measured.get(config)
        if row is None:
            return None
        # Each tensor's part of a tile is held as often as there are stages. A score's function
        # reads one element for each, as a rule, and a mask's one for each row and column.
        tile, edges = tile_of(config, self.queries)
        every = sum(self.score_tensors) + sum(self.mask_tensors)
        most = tile * every * config.num_stages
        likely = tile * sum(self.score_tensors) + edges * sum(self.mask_tensors)
        if fits_chip(row, self.hardware, most):
            return True
        exact = bool(self._tables[0])  # with smaller values it needs less
        too_large = not fits_chip(row, self.hardware, likely * (config.num_stages - 1))
        return False if exact and too_large else None

    @property
    def fitting_configs(self) -> tuple[KernelConfig, ...]:
        """The configs known to fit the chip; none for a chip without measurements."""
        return tuple(config for config in self._measured if self.fits(config))

    def fitting(self, answer: Any) -> Any:
        """Those not known to exceed the chip or, if all do, the one nearest to the last, which
        is Inductor's own beside those of max-autotune."""
        from torch_diode.candidates.gpu.attention import nearest

        kept = tuple(config for config in answer if self.fits(config) is not False)
        if kept or not answer:
            return kept
        others = self.fitting_configs or [
            config for config in self._measured if self.fits(config) is None
        ]
        instead = nearest(answer[-1], others)
        return answer if instead is None else (instead,)

    @property
    def _measured(self) -> Table:
        return self._tables[0] or self._tables[1]

    @cached_property
    def _tables(self) -> tuple[Table, Table]:
        """The kernels measured with these head dimensions, and those with larger values."""
        from torch_diode.candidates.gpu.attention import measured_attention

        precision = "tf32" if self.tf32 and self.dtype == "float32" else self.dtype
        values = self.value_dim or self.head_dim
        measured = partial(measured_attention, self.asks, precision, self.hardware, self.head_dim)
        return measured(values), measured() if values < self.head_dim else {}

    def _check_config(self, config: Any) -> None:
        """One that was compiled and fits, or no larger than one of Inductor's own: it then needs
        no more shared memory, and divides the blocks of a mask that Inductor's divides."""
        super()._check_config(config)
        if self.fits(config):
            return
        if not any(config.is_within(own) for own in self.default):
            raise self._refused(config, "blocks and stages within those of one config of `default`")


@dataclass(frozen=True)
class AttentionForward(Attention):
    """The configs of flex attention's forward kernel."""

    asks = "forward"


@dataclass(frozen=True)
class AttentionBackward(Attention):
    """The configs of flex attention's backward kernel."""

    asks = "backward"

    def _check_config(self, config: Any) -> None:
        """The blocks of one pass divide each other."""
        super()._check_config(config)
        if config["block_n1"] % config["block_m1"] or config["block_m2"] % config["block_n2"]:
            raise self._refused(config, "block_m1 to divide block_n1, block_n2 to divide block_m2")


@dataclass(frozen=True)
class AttentionDecode(Attention):
    """The configs of flex attention's kernel for few queries."""

    asks = "decode"


@dataclass(frozen=True)
class CpuAttention(Question):
    """The kernel of scaled dot-product attention on a CPU, forward and without gradients: ATen's,
    or a C++ kernel that is compiled with the graph."""

    decision = "sdpa"
    asks = "attention"

    batch: int
    heads: int
    queries: int
    keys: int
    head_dim: int
    causal: bool
    mask: str
    """`none`, `keys` where it is the same for all queries, as of padding, or `full`."""

    def checked(self, answer: Any) -> str:
        """Refuses other names."""
        if answer not in (ATEN, CPP_ATTENTION):
            raise self._refused(answer, f"{ATEN!r}, {CPP_ATTENTION!r} or None")
        return str(answer)


QUESTIONS: tuple[type[Question], ...] = (
    PersistentReduction,
    CooperativeReduction,
    ReductionSplit,
    Convolution,
    DepthwiseConvolution,
    Fusion,
    FusionPriority,
    AttentionForward,
    AttentionBackward,
    AttentionDecode,
    CpuAttention,
)
