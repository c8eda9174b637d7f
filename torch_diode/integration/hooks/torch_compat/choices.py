"""The objects Inductor has for choices: their handler, how they are made, what is known of them."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from torch_diode.integration.hooks.torch_compat.matmul_hook import GENERATOR_HOOK, matmul_hook
from torch_diode.types.errors import MissingPartError


def library_choice(library: Any, inputs: Any, layout: Any) -> Any:
    """A library's kernel (an `ExternKernelChoice`) as the object the hook returns."""
    if matmul_hook() == GENERATOR_HOOK:
        return library.bind(inputs.nodes(), layout)
    from torch._inductor.kernel_template_choice import KernelTemplateChoice
    from torch._inductor.template_heuristics.params import DictKernelTemplateParams

    return KernelTemplateChoice(
        template=library,
        params=DictKernelTemplateParams({}),
        extra_kwargs={},
        layout=layout,
        inputs=inputs,
    )


def can_be_rendered(choice: Any) -> bool:
    """True if a choice yields a kernel: Inductor silently drops those that do not."""
    if choice is None:
        return False
    return matmul_hook() == GENERATOR_HOOK or choice.choice is not None


def disable_prologue_fusion(choice: Any) -> None:
    """Keep pointwise ops on a rendered template's operands in kernels of their own.

    A single template would repeat them for each block that loads an operand, without a benchmark
    of whether that is faster. With several choices, Inductor benchmarks it.
    """
    from torch.utils._ordered_set import OrderedSet

    caller = getattr(choice, "choice", choice)
    if hasattr(caller, "allowed_prologue_inps"):
        caller.allowed_prologue_inps = OrderedSet()


def fixed_layout(inputs: Any, layout: Any | None) -> Any:
    """The output's layout as a Triton template needs it: fixed, not flexible."""
    from torch._inductor.ir import FixedLayout

    if hasattr(inputs, "output_layout"):
        return inputs.output_layout(flexible=False)
    if isinstance(layout, FixedLayout):
        return layout
    assert layout is not None
    return FixedLayout(layout.device, layout.dtype, layout.size)


def annotations_of(choice: Any) -> dict[str, Any]:
    """A choice's annotations: 2.10+ copies them from KTC to caller, on 2.9 they are added."""
    annotations = getattr(choice, "annotations", None)
    if not isinstance(annotations, dict):
        annotations = {}
        choice.annotations = annotations
    return annotations


def choices_slot(virtualized: ModuleType) -> Any:
    """Torch's slot for the choices handler; raises on a torch without it."""
    slot = virtualized._choices
    if not callable(slot._get_handler):
        raise MissingPartError(f"{virtualized.__name__}._choices has no _get_handler")
    return slot


def template_uid(choice: Any) -> str:
    """The uid of the template a choice is of; empty on 2.9, whose choices do not tell."""
    return str(getattr(getattr(choice, "template", None), "uid", ""))
