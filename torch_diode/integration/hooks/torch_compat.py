"""The differences between torch releases, 2.9 to 2.15: all of them, and here only.

Each is told by what the interface looks like, not by a version, but for one that no interface
shows (`fuses_reshaped_epilogues`). What other modules of this room call on torch directly has been the same
in all of these releases.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, cast

from torch_diode.types.errors import MissingPartError

FINALIZE_HOOK = "_finalize_template_configs"
GENERATOR_HOOK = "get_mm_configs"
_HOOK_ARGUMENTS = {
    FINALIZE_HOOK: ("template_choices", "kernel_inputs", "templates", "op_name", "kwarg_overrides"),
    GENERATOR_HOOK: ("kernel_inputs", "layout", "templates", "op_name", "kwarg_overrides"),
}
_NEEDED = {
    "torch._inductor.choices": ("InductorChoices",),
    "torch._inductor.codecache": ("FxGraphHashDetails",),
    "torch._inductor.kernel.bmm": ("bmm_template",),
    "torch._inductor.kernel.mm": ("mm_template",),
    "torch._inductor.kernel_inputs": ("MMKernelInputs",),
    "torch._inductor.ir": ("ExpandView", "FixedLayout", "TensorBox"),
    "torch._inductor.select_algorithm": ("realize_inputs", "add_preprocessing_fn"),
    "torch._inductor.utils": ("use_triton_template", "use_triton_tma_template"),
    "torch._inductor.virtualized": ("V", "_choices"),
}


def why_unusable() -> str:
    """Empty where this torch has what the matmul integration needs; else what is missing.

    Imports Inductor, so it is asked when torch uses it, or by someone who wants to know.
    """
    for module_name, names in _NEEDED.items():
        try:
            module = __import__(module_name, fromlist=["_"])
        except ImportError as fault:
            return f"{module_name} cannot be imported ({fault})"
        for name in names:
            if not hasattr(module, name):
                return f"{module_name} has no {name}"
    return _why_hook_unusable()


def _why_hook_unusable() -> str:
    from torch._inductor.choices import InductorChoices

    hook = matmul_hook()
    if not hook:
        return f"InductorChoices has neither {FINALIZE_HOOK} nor {GENERATOR_HOOK}"
    missing = set(_HOOK_ARGUMENTS[hook]) - _parameters(getattr(InductorChoices, hook))
    if missing:
        return f"InductorChoices.{hook} has no argument {', '.join(sorted(missing))}"
    if hook == FINALIZE_HOOK and not hasattr(InductorChoices, "get_ktc"):
        return "InductorChoices has no get_ktc"
    return ""


@functools.cache
def matmul_hook() -> str:
    """The method that hands out matmul choices: 2.10+ finalizes a list, 2.9 generates one."""
    from torch._inductor.choices import InductorChoices

    for name in (FINALIZE_HOOK, GENERATOR_HOOK):
        if hasattr(InductorChoices, name):
            return name
    return ""


def other_hook(handler: Any) -> str:
    """The class, not ours nor torch's usual one, whose matmul hook ours stands before, if any."""
    from torch._inductor.choices import InductorChoices

    ours = False
    for part in type(handler).__mro__:
        if part.__module__.startswith("torch_diode."):
            ours = True
        elif ours and matmul_hook() in vars(part):
            return "" if part is InductorChoices else part.__name__
    return ""


def _parameters(function: Callable[..., Any]) -> set[str]:
    return set(inspect.signature(function).parameters)


@dataclass(frozen=True)
class TemplateKwargs:
    """What a template's choices have in common: everything Inductor derives but the config."""

    kwargs: dict[str, Any]
    """A choice's own keyword arguments, those of the config among them."""
    extra: dict[str, Any]
    """Keyword arguments that are the same for every config."""
    make: Callable[[dict[str, Any], dict[str, Any], Any, Any], Any]
    """From keyword arguments, extra ones, inputs and layout to the object the hook returns (2.9:
    None if it cannot be made)."""
    inputs: Any
    """The inputs as the template takes them."""


def template_kwargs_of(
    handler: Any, inputs: Any, template: Any, op: str, overrides: dict[str, Any], layout: Any
) -> TemplateKwargs | None:
    """The first choice Inductor itself would make of a template, to be changed into others.

    None where Inductor has no choice for these inputs. Call it with max-autotune patched on.
    """
    if matmul_hook() == GENERATOR_HOOK:
        return _base_of_caller(inputs, template, op, overrides, layout)
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


def _base_of_caller(
    inputs: Any, template: Any, op: str, overrides: dict[str, Any], layout: Any
) -> TemplateKwargs | None:
    """As 2.9's `get_mm_configs` does it, which makes callers at once."""
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
    """Where Inductor's template heuristics are asked for: 2.14 moved them."""
    import torch._inductor.choices as choices

    if hasattr(choices, "get_template_heuristic"):
        return choices
    import torch._inductor.template_heuristics as heuristics

    return cast("Any", heuristics)


_PLAIN_EXTRA = frozenset({"ALLOW_TF32", "epilogue_fn", "epilogue_fn_hash", "prefix_args"})
"""Keyword arguments that say nothing about one matmul in particular. TMA's workspace does, and
must have a name of its own each time."""


def template_kwargs_key(
    handler: Any, inputs: Any, template: Any, op: str, overrides: dict[str, Any], layout: Any
) -> Hashable | None:
    """What a base depends on, for matmuls that share one; None where it may be anything.

    Read in the sources of 2.9 to 2.15: dtypes, scalars, precision, and of the sizes whether TF32
    will do for them, which up to 2.12 is a question of divisibility and then one of size. Symbols
    are left to Inductor, which may guard on them; so is AMD, where one more selector has a say,
    and whatever is not torch's own.
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
        _precision(),
        getattr(inductor_config, "force_same_precision", None),
        tuple(getattr(inductor_config, "multi_kernel_hints", ())),
        (m % 16 == 0, n % 16 == 0, k % 8 == 0, m >= 16, min(n, k) >= 512),
    )


@functools.cache
def _own_path() -> Any | None:
    """InductorChoices' way from inputs to choices (2.9 has none); None on AMD."""
    import torch
    from torch._inductor.choices import InductorChoices

    if torch.version.hip is not None:
        return None
    return getattr(InductorChoices, "get_ktc", InductorChoices)


def shares(base: TemplateKwargs, inputs: Any) -> bool:
    """Whether nothing in a base is about the matmul it was made for."""
    return base.inputs is inputs and _PLAIN_EXTRA.issuperset(base.extra)


def plain_sizes(values: Iterable[Any]) -> tuple[int, ...] | None:
    """Sizes or strides that are all numbers, as such; None where one is a symbol."""
    try:
        return tuple([int(value) for value in values])
    except TypeError:
        return None


def can_be_rendered(choice: Any) -> bool:
    """Whether a made choice yields a kernel: where it does not, Inductor drops it silently."""
    if choice is None:
        return False
    return matmul_hook() == GENERATOR_HOOK or choice.choice is not None


def disable_prologue_fusion(choice: Any) -> None:
    """Have a rendered template load its operands as they are, pointwise work on them done before.

    A template that runs alone would do that work itself, again for each block that loads an
    operand, and nobody asks whether that is faster. Where there are several choices, Inductor
    benchmarks it.
    """
    from torch.utils._ordered_set import OrderedSet

    caller = getattr(choice, "choice", choice)
    if hasattr(caller, "allowed_prologue_inps"):
        caller.allowed_prologue_inps = OrderedSet()


def fixed_layout(inputs: Any, layout: Any | None) -> Any:
    """The output's layout as a Triton template needs it: decided, not flexible."""
    from torch._inductor.ir import FixedLayout

    if hasattr(inputs, "output_layout"):
        return inputs.output_layout(flexible=False)
    if isinstance(layout, FixedLayout):
        return layout
    assert layout is not None
    return FixedLayout(layout.device, layout.dtype, layout.size)


def hints(values: Sequence[Any]) -> tuple[int, ...]:
    """The sizes Inductor optimises for, symbols replaced by their hints."""
    numbers = plain_sizes(values)
    if numbers is not None:
        return numbers
    import torch._inductor.config as inductor_config
    from torch._inductor.virtualized import V

    sizevars: Any = V.graph.sizevars
    if hasattr(sizevars, "optimization_hints"):
        found = sizevars.optimization_hints(values)
    else:
        fallback = inductor_config.unbacked_symint_fallback
        found = sizevars.size_hints(values, fallback=fallback)
    return tuple(int(value) for value in found)


@functools.cache
def max_batch_size() -> int | None:
    """How many products the batched template can be launched for; None from 2.12 on, where its
    grid splits what is more. Before, the batch is the grid's second dimension."""
    from torch._inductor.kernel.bmm import bmm_template

    most = 65535
    blocks = {"BLOCK_M": 16, "BLOCK_N": 16}
    return most if bmm_template.grid(most + 1, 16, 16, blocks)[1] > most else None


def compiles_in_subprocess() -> bool:
    """Whether graphs are handed to another process to be compiled, which has no torch-diode."""
    compile_fx = sys.modules.get("torch._inductor.compile_fx")
    mode = getattr(compile_fx, "fx_compile_mode", None)
    return getattr(mode, "name", "") == "SUBPROCESS"


def batch_invariant() -> bool:
    """Whether a product's rows may not depend on how many there are (an option since 2.13)."""
    import torch._inductor.config as inductor_config

    return bool(getattr(inductor_config, "batch_invariant", False))


def torch_release() -> str:
    """The release of torch, such as 2.13.0."""
    import torch

    return torch.__version__.partition("+")[0]


def installed_versions() -> dict[str, str]:
    """The releases of torch and triton, without the build's name; empty where there is none."""
    # Imports a quarter of what importing torch_diode would take.
    from torch_diode.hardware.versions import versions

    return {**versions(), "torch": torch_release()}


def traced_size(value: Any) -> int:
    """The number a traced size had when the program ran; the number itself where it is none."""
    return int(value.node.hint) if hasattr(value, "node") else int(value)


def traced_size_or_none(value: Any) -> int | None:
    """The same; None for a size that is known only when the program runs."""
    if not hasattr(value, "node"):
        return int(value)
    hint = getattr(value.node, "hint", None)
    return hint if isinstance(hint, int) else None


def fuses_reshaped_epilogues() -> bool:
    """Whether a template takes pointwise work along whose dimensions were regrouped (a linear layer
    on a batch of sequences): not in 2.10 and 2.11, whose order of fusing and merging loops loses
    it. No interface shows that, so here it is the release."""
    from torch._inductor import config

    lossy = torch_release().startswith(("2.10.", "2.11."))
    return not (lossy and config.loop_ordering_after_fusion)


def has_lowering(op: Any) -> bool:
    """Whether Inductor writes code for an op, instead of calling torch's kernel."""
    from torch._inductor import lowering

    return op in lowering.lowerings and op not in lowering.fallbacks


def reads_template(value: Any, graph: Any) -> bool:
    """Whether what a node was lowered to is a matmul template's output, or a formula that reads
    one; a formula has no place in memory yet."""
    from torch._inductor import ir

    while isinstance(value, (ir.MutableBox, ir.BaseView)):
        value = value.data
    if isinstance(value, ir.Loops):
        sources = [graph.name_to_buffer.get(name) for name in value.get_read_names()]
    else:
        sources = [value]
    return any(isinstance(source, ir.TemplateBuffer) for source in sources)


def tf32_allowed() -> bool:
    """Whether float32 products may be computed in TF32; the older switch raises where the newer
    one was used."""
    precision = _precision()
    return precision == "tf32" if isinstance(precision, str) else precision


def _precision() -> str | bool:
    import torch

    matmul = torch.backends.cuda.matmul
    precision = getattr(matmul, "fp32_precision", None)
    return precision if precision is not None else bool(matmul.allow_tf32)


def offers_tma(mat1: Any, mat2: Any, layout: Any) -> bool:
    """Whether Inductor would take its TMA template for these, without adding guards for it."""
    import torch._inductor.utils as inductor_utils

    test: Any = inductor_utils.use_triton_tma_template
    if "output_layout" in _parameters(test):
        return bool(test(mat1, mat2, output_layout=layout))
    return bool(test(mat1, mat2))


def tma_template() -> Any | None:
    """The persistent TMA template for chips before Blackwell."""
    import torch._inductor.kernel.mm as mm

    return getattr(mm, "persistent_tma_mm_template", None)


def template_hashes() -> dict[str, str]:
    """The templates' hashes by the names candidates have, for tables that note them.

    Empty on 2.9, which has none, and where Inductor has not been imported: then nothing is being
    compiled with them either.
    """
    if "torch._inductor.kernel.mm" not in sys.modules:
        return {}
    import torch._inductor.kernel.bmm as bmm
    import torch._inductor.kernel.mm as mm

    found = [mm.mm_template, bmm.bmm_template, tma_template()]
    hashes = {t.uid: getattr(t, "src_hash", None) for t in found if t is not None}
    return {name: text for name, text in hashes.items() if text}


def add_preprocessing(function: Callable[[list[Any]], list[Any]]) -> Callable[[], None]:
    """Have Inductor pass every list of choices through a function; returns what undoes it."""
    import torch._inductor.select_algorithm as select

    select.add_preprocessing_fn(function)

    def undo() -> None:
        cache = select.get_algorithm_selector_cache()
        if function in cache.preprocessing_fns:
            cache.preprocessing_fns.remove(function)

    return undo


def annotations_of(choice: Any) -> dict[str, Any]:
    """Where notes about a choice live: 2.10+ carries them from KTC to caller, 2.9 has no place."""
    notes = getattr(choice, "annotations", None)
    if not isinstance(notes, dict):
        notes = {}
        choice.annotations = notes
    return notes


def choices_slot(virtualized: ModuleType) -> Any:
    """Where torch keeps the choices handler; raises on a torch without it."""
    slot = virtualized._choices
    if not callable(slot._get_handler):
        raise MissingPartError(f"{virtualized.__name__}._choices has no _get_handler")
    return slot


def devices_in(example_inputs: Iterable[Any]) -> list[Any]:
    """The devices a graph's inputs are on, each once, in order."""
    found = (getattr(value, "device", None) for value in example_inputs)
    return list(dict.fromkeys(device for device in found if device is not None))


def launch_of(choice: Any, inputs: Sequence[Any], out: Any) -> Callable[[], Any]:
    """What runs a choice once on these tensors: the very call Inductor would benchmark.

    Most choices carry a request that makes it. The others (subgraphs; on 2.9 vendor kernels too)
    hand it to the benchmarker, where it is caught.
    """
    request = getattr(choice, "bmreq", None)
    if request is not None:
        return cast("Callable[[], Any]", request.make_run_fn(*inputs, out=out))
    return _caught(choice, inputs, out)


def _caught(choice: Any, inputs: Sequence[Any], out: Any) -> Callable[[], Any]:
    from unittest import mock

    from torch._inductor.runtime.benchmarking import benchmarker

    calls: list[Callable[[], Any]] = []

    def catch(
        function: Callable[..., Any],
        arguments: Sequence[Any] | None = None,
        keywords: dict[str, Any] | None = None,
        **_: Any,
    ) -> float:
        calls.append(functools.partial(function, *(arguments or ()), **(keywords or {})))
        return 1.0

    with contextlib.ExitStack() as stack:
        for name in ("benchmark", "benchmark_gpu", "benchmark_cpu"):
            stack.enter_context(mock.patch.object(benchmarker, name, catch))
        choice.benchmark(*inputs, out=out)
    if not calls:
        raise MissingPartError(f"{type(choice).__name__} benchmarks itself without torch's help")
    return calls[-1]


def release_launch(choice: Any) -> None:
    """Give back what `launch_of` loaded for a choice."""
    request = getattr(choice, "bmreq", None)
    if request is not None:
        request.cleanup_run_fn()
