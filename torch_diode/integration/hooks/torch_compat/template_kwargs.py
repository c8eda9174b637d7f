"""The keyword arguments Inductor derives for a template's choices."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, cast

from torch_diode.integration.hooks.torch_compat.matmul_hook import GENERATOR_HOOK, matmul_hook
from torch_diode.integration.hooks.torch_compat.settings import float32_precision
from torch_diode.integration.hooks.torch_compat.sizes import plain_sizes


@dataclass(frozen=True)
class TemplateKwargs:
    """Everything Inductor derives for a template's choices besides the config."""

    kwargs: dict[str, Any]
    """A choice's own keyword arguments, including those of the config."""
    extra: dict[str, Any]
    """Keyword arguments that are the same for every config."""
    make: Callable[[dict[str, Any], dict[str, Any], Any, Any], Any]
    """Creates a choice from keyword arguments, extra ones, inputs and layout (on 2.9: None where it
    cannot be created)."""
    inputs: Any
    """The inputs as adjusted for the template."""


def template_kwargs_of(
    handler: Any, inputs: Any, template: Any, op: str, overrides: dict[str, Any], layout: Any
) -> TemplateKwargs | None:
    """The keyword arguments of Inductor's first choice of a template; None if it has none.

    Call it with max-autotune patched on.
    """
    if matmul_hook() == GENERATOR_HOOK:
        return _caller_kwargs_of(inputs, template, op, overrides, layout)
    first = next(iter(handler.get_ktc(inputs, template, op, overrides)), None)
    if first is None:
        return None
    choice_type, params_type = type(first), type(first.params)

    def make(kwargs: dict[str, Any], extra: dict[str, Any], inputs: Any, layout: Any) -> Any:
        return choice_type(
            template=template,
            params=params_type(kwargs),
            extra_kwargs=extra,
            layout=layout,
            inputs=inputs,
        )

    return TemplateKwargs(first.params.to_kwargs(), first.extra_kwargs, make, first.inputs)


def _caller_kwargs_of(
    inputs: Any, template: Any, op: str, overrides: dict[str, Any], layout: Any
) -> TemplateKwargs | None:
    """The same for 2.9, whose `get_mm_configs` creates callers directly."""
    source = _template_heuristics().get_template_heuristic(template.uid, inputs.device_type, op)
    first = next(iter(source.get_template_configs(inputs, layout, op)), None)
    if first is None:
        return None

    def make(kwargs: dict[str, Any], extra: dict[str, Any], inputs: Any, layout: Any) -> Any:
        return template.choice_or_none(**kwargs, **extra, layout=layout, input_nodes=inputs.nodes())

    extra = dict(source.get_extra_kwargs(inputs, layout, op))
    return TemplateKwargs(
        {**first, **overrides}, extra, make, source.adjust_kernel_inputs(inputs, op)
    )


@functools.cache
def _template_heuristics() -> Any:
    """The module of Inductor's template heuristics: 2.14 moved them."""
    import torch._inductor.choices as choices

    if hasattr(choices, "get_template_heuristic"):
        return choices
    import torch._inductor.template_heuristics as heuristics

    return cast("Any", heuristics)


_PLAIN_EXTRA = frozenset({"ALLOW_TF32", "epilogue_fn", "epilogue_fn_hash", "prefix_args"})
"""Keyword arguments that do not depend on the single matmul. TMA's workspace does: it needs a new
name each time."""


def template_kwargs_key(
    handler: Any, inputs: Any, template: Any, op: str, overrides: dict[str, Any], layout: Any
) -> Hashable | None:
    """Everything that derived keyword arguments depend on; None where that is not known.

    Read in the sources of 2.9 to 2.15: dtypes, scalars, precision, and of the sizes only whether
    TF32 applies, by divisibility up to 2.12 and by size after. None for symbols, on which Inductor
    may guard, for AMD, where another selector takes part, and for heuristics that are not torch's.
    """
    import torch._inductor.config as inductor_config

    own_path = _own_path()
    if own_path is None or getattr(type(handler), "get_ktc", own_path) is not own_path:
        return None
    if inputs.device_type != "cuda":
        return None
    source = _template_heuristics().get_template_heuristic(template.uid, "cuda", op)
    if not type(source).__module__.startswith("torch._inductor."):
        return None
    nodes = inputs.nodes()
    sizes = [plain_sizes(node.get_size()) for node in nodes]
    if None in sizes:
        return None
    (*_, m, k), (*_, n) = cast("Any", sizes[inputs._mat1_idx]), cast("Any", sizes[inputs._mat2_idx])
    return (
        source,
        template,
        op,
        tuple([node.get_dtype() for node in nodes]),
        layout.dtype,
        repr(inputs._scalars),
        repr(overrides),
        float32_precision(),
        getattr(inductor_config, "force_same_precision", None),
        tuple(getattr(inductor_config, "multi_kernel_hints", ())),
        (m % 16 == 0, n % 16 == 0, k % 8 == 0, m >= 16, min(n, k) >= 512),
    )


@functools.cache
def _own_path() -> Any | None:
    """InductorChoices' `get_ktc`, or on 2.9, which has none, the class; None on AMD."""
    import torch
    from torch._inductor.choices import InductorChoices

    if torch.version.hip is not None:
        return None
    return getattr(InductorChoices, "get_ktc", InductorChoices)


def is_shareable(derived: TemplateKwargs, inputs: Any) -> bool:
    """True if nothing in them depends on the single matmul."""
    return derived.inputs is inputs and _PLAIN_EXTRA.issuperset(derived.extra)
