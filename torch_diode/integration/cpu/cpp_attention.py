"""A C++ kernel of scaled dot-product attention, in the place of ATen's: the call it stands for, and
its template of Inductor's, which is compiled with the graph."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch._inductor.config as inductor_config
import torch._inductor.lowering  # the templates cannot be imported before it
from torch._inductor import ir
from torch._inductor.codegen.cpp import get_export_declaration
from torch._inductor.codegen.cpp_template import CppTemplate
from torch._inductor.select_algorithm import realize_inputs
from torch._inductor.virtualized import V
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

from torch_diode.heuristics.questions import FULL_MASK, KEY_MASK, NO_MASK
from torch_diode.integration.hooks import torch_compat
from torch_diode.integration.hooks.fallback import Abstained, NotApplicable


@dataclass(frozen=True)
class AttentionCall:
    """The arguments of `aten._scaled_dot_product_flash_attention_for_cpu` as they reach its
    lowering, and the node of the graph."""

    node: Any
    query: Any
    key: Any
    value: Any
    causal: bool
    mask: Any
    scale: float | None

    @classmethod
    def of(cls, args: tuple[Any, ...], kwargs: dict[str, Any]) -> AttentionCall:
        """The call that is being lowered; raises for one that the kernel does not compute."""
        node = V.graph.current_node
        query, key, value, *rest = args
        given = dict(zip(("dropout_p", "is_causal"), rest, strict=False)) | kwargs
        causal, mask = bool(given.get("is_causal")), given.get("attn_mask")
        call = cls(node, query, key, value, causal, mask, given.get("scale"))
        if given.get("dropout_p") or call._needs_sums():
            raise NotApplicable
        call._check_operands()
        return call

    def _needs_sums(self) -> bool:
        """Whether the sums of exponentials are used too: a training step's backward pass does."""
        return any(user.args[1:] == (1,) and user.users for user in self.node.users)

    def _check_operands(self) -> None:
        operands = [self.query, self.key, self.value, *self.masks]
        dtypes = {str(operand.get_dtype()).removeprefix("torch.") for operand in operands}
        if dtypes != {"float32"}:
            raise Abstained(f"attention in {', '.join(sorted(dtypes))}: only ATen is on offer")
        sizes = [tuple(each.get_size()) for each in (self.query, self.key, self.value)]
        same = sizes[1] == sizes[2] and all(len(size) == 4 for size in sizes)
        if not same or [sizes[0][i] for i in (0, 1, 3)] != [sizes[1][i] for i in (0, 1, 3)]:
            raise Abstained("attention with other sizes of keys or values: only ATen is on offer")
        # Such a size may be one, along which a mask would have to be repeated.
        unknown = any(free_unbacked_symbols(each.get_size()) for each in operands)
        if unknown or not isinstance(self.scale, (float, int, type(None))):
            raise Abstained("attention of sizes known only at run time: only ATen is on offer")

    @property
    def masks(self) -> tuple[Any, ...]:
        """The mask, where there is one."""
        return () if self.mask is None else (self.mask,)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Batch, heads, queries, keys and head dimension, symbols as their hints."""
        batch, heads, queries, depth = self.query.get_size()
        return torch_compat.hints((batch, heads, queries, self.key.get_size()[2], depth))

    @property
    def mask_kind(self) -> str:
        """The kind of mask, as questions name it."""
        if self.mask is None:
            return NO_MASK
        return KEY_MASK if self.mask.get_size()[-2] == 1 else FULL_MASK

    def kernel(self) -> tuple[Any, None]:
        """The kernel as a node of Inductor's graph, and no sums."""
        operands = realize_inputs(self.query, self.key, self.value, *self.masks)
        if any(operand.get_stride()[-1] != 1 for operand in operands[:3]):
            raise Abstained("attention whose rows are not dense: only ATen is on offer")
        template: Any = AttentionTemplate(operands, self._layout(), self.causal, self.scale)
        box = template.generate().output_node()
        # What follows reads the result in another order than the kernel writes it.
        V.graph.no_fuse_buffer_names.add(box.get_name())
        return box, None

    def _layout(self) -> Any:
        """The layout of ATen's result."""
        fake = self.node.meta["val"][0]
        size, stride = (list(map(_expression, each)) for each in (fake.shape, fake.stride()))
        return ir.FixedLayout(self.query.get_device(), torch.float32, size, stride)


def _expression(value: Any) -> Any:
    return value.node.expr if hasattr(value, "node") else value


class AttentionTemplate(CppTemplate):
    """Renders `attention.cpp`."""

    def __init__(
        self, operands: Iterable[Any], layout: Any, causal: bool, scale: float | None
    ) -> None:
        super().__init__("attention", list(operands), layout, _threads())
        self._causal, self._scale = causal, scale

    def render(  # type: ignore[override]
        self, kernel: Any, template_buffer_node: Any = None, epilogue_nodes: Any = None, **_: Any
    ) -> str:
        """The C++ code of the kernel."""
        if epilogue_nodes:
            raise NotImplementedError("attention: nothing can be fused to it")
        query, key, value, *masks = self.input_nodes
        mask = _four_dimensions(masks[0]) if masks else None
        inputs = {"query": query, "key": key, "value": value, "mask": mask}
        scale = "1.0f / std::sqrt((float)depth)" if self._scale is None else f"{self._scale!r}"
        source: str = _template().render(
            **inputs,
            template=self,
            kernel=kernel,
            name=str(kernel.kernel_name),
            inputs=inputs,
            result=template_buffer_node or self.output_node,
            causal=self._causal,
            scale=scale,
            threads=self.num_threads,
            stride=functools.partial(_stride, kernel),
            export_declaration=get_export_declaration(),
        )
        return source


def _threads() -> int:
    """Threads compiled into the kernel, as into Inductor's own."""
    named = inductor_config.cpp.threads
    return named if named >= 1 else torch.get_num_threads()


def _stride(kernel: Any, node: Any, dim: int) -> str:
    """A stride as C++ code; 0 along a dimension of one element, which is the same for all."""
    return "0" if node.get_size()[dim] == 1 else str(kernel.stride(node, dim))


def _four_dimensions(mask: Any) -> Any:
    """A view of the mask with a batch and heads."""
    missing = 4 - len(mask.get_size())
    if not missing:
        return mask
    layout = mask.get_layout()
    size = [*[1] * missing, *mask.get_size()]
    stride = [*[0] * missing, *mask.get_stride()]
    fixed = ir.FixedLayout(layout.device, layout.dtype, size, stride, layout.offset)
    data = mask.data if isinstance(mask, ir.ReinterpretView) else ir.StorageBox(mask)
    return ir.ReinterpretView(data=data, layout=fixed)


@functools.cache
def _template() -> Any:
    """The parsed template, which takes longer to parse than to render."""
    source = Path(__file__).with_name("attention.cpp").read_text(encoding="utf-8")
    return CppTemplate._template_from_string(source)
