"""The differences between torch releases 2.9 to 2.15: all of them, and only here.

Each is detected from the interface, not the version, except one that no interface shows
(`fuses_reshaped_epilogues`). Other modules of this package call on torch only what is the same in
all these releases.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
import time
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
    """Empty if this torch has everything the matmul integration needs, else what is missing.

    Imports Inductor.
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
    """The method for matmul choices: 2.10+ finalizes a list, 2.9 generates one."""
    from torch._inductor.choices import InductorChoices

    for name in (FINALIZE_HOOK, GENERATOR_HOOK):
        if hasattr(InductorChoices, name):
            return name
    return ""


def other_hook(handler: Any) -> str:
    """The name of the class whose matmul hook ours overrides; empty for torch's default."""
    from torch._inductor.choices import InductorChoices

    hook = matmul_hook()
    for registered in vars(handler).get("_choices", ()):  # 2.15: those of torch's own register
        if getattr(type(registered), hook) is not getattr(InductorChoices, hook):
            return type(registered).__name__
    ours = False
    for part in type(handler).__mro__:
        if part.__module__.startswith("torch_diode."):
            ours = True
        elif ours and hook in vars(part):
            return "" if part is InductorChoices else part.__name__
    return ""


_ANSWER_HOOKS = {
    "reduction": (
        "should_use_persistent_reduction",
        "should_use_cooperative_reduction",
        "reduction_split_factor",
    ),
    "convolution": ("get_conv_configs", "get_depthwise_conv_configs"),
    "fusion": ("can_fuse", "can_fuse_horizontal", "score_fusion"),
    "attention": (
        "get_flex_attention_fwd_configs",
        "get_flex_attention_bwd_configs",
        "get_flex_decode_configs",
    ),
}
_HOOKS_SINCE_2_12 = {"get_depthwise_conv_configs"}


def answer_hooks(decisions: Iterable[str]) -> tuple[str, ...]:
    """The methods by which this release takes decisions beyond matmul; one that every release has
    is named even if it is missing here, which is then a failed step."""
    from torch._inductor.choices import InductorChoices

    return tuple(
        hook
        for decision in dict.fromkeys(decisions)
        for hook in _ANSWER_HOOKS[decision]
        if hook not in _HOOKS_SINCE_2_12 or hasattr(InductorChoices, hook)
    )


def reduction_arguments(*args: Any) -> tuple[Any, Any, Any]:
    """The device, the outputs and the length of a reduction that may be cooperative: releases
    before 2.13 give the features of its kernel instead."""
    if len(args) == 3:
        return args
    from torch._inductor.virtualized import V

    (features,) = args
    return V.graph.get_current_device_or_throw(), features.numel, features.reduction_numel


def attention_arguments(*args: Any) -> tuple[int, int, Any, str]:
    """The head dimension, the length of the queries or 0, dtype and device type of an attention:
    only the forward kernel of 2.14 and later is told the length."""
    head_dim, *length, dtype, device_type = args
    return int(head_dim), hints(length)[0] if length else 0, dtype, device_type


@dataclass(frozen=True)
class AttentionCall:
    """What a flex attention is called with beyond what its hooks are told, on any release."""

    queries: int
    """0 for a number known only at run time."""
    value_dim: int
    score_tensors: tuple[int, ...]
    """Bytes per element of the tensors that the function of scores reads, except those with fewer
    elements than there are keys."""
    mask_tensors: tuple[int, ...]
    """The same of the function of the mask."""


def attention_call() -> AttentionCall | None:
    """The attention being lowered; None outside of its lowering."""
    from torch._inductor.virtualized import V

    node = getattr(V.graph, "current_node", None)
    if node is None or "flex_attention" not in str(node.target) or len(node.args) < 9:
        return None
    queries, keys, values = (argument.meta["val"].shape for argument in node.args[:3])
    rows = traced_size_or_none(keys[-2]) or 1
    score, mask = (_element_bytes(tensors, rows) for tensors in node.args[-2:])
    value_dim = traced_size_or_none(values[-1]) or 0
    return AttentionCall(traced_size_or_none(queries[-2]) or 0, value_dim, score, mask)


def _element_bytes(tensors: Iterable[Any], least: int) -> tuple[int, ...]:
    """Bytes per element of the nodes that are tensors of this many elements, or of a number known
    only at run time."""
    values: list[Any] = [getattr(each, "meta", {}).get("val") for each in tensors]
    return tuple(
        value.element_size()
        for value in values
        if hasattr(value, "element_size") and (traced_size_or_none(value.numel()) or least) >= least
    )


def is_strict_reduction(features: Any) -> bool:
    """True if the order of additions is fixed (an option since 2.15), and persistence with it."""
    strict = getattr(features, "strict_reduction_rblock", None)
    return strict is not None and strict() is not None


def known_at_most(size: Any, limit: int) -> bool:
    """True if a size cannot exceed a limit; adds no guard."""
    from torch._inductor.virtualized import V

    return bool(V.graph.sizevars.statically_known_leq(size, limit))


def _parameters(function: Callable[..., Any]) -> set[str]:
    return set(inspect.signature(function).parameters)


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
        _precision(),
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


def plain_sizes(values: Iterable[Any]) -> tuple[int, ...] | None:
    """Sizes or strides as integers; None where one is a symbol."""
    try:
        return tuple([int(value) for value in values])
    except TypeError:
        return None


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


def hints(values: Sequence[Any]) -> tuple[int, ...]:
    """The sizes Inductor optimises for: symbols are replaced by their hints."""
    numbers = plain_sizes(values)
    if numbers is not None:
        return numbers
    import torch._inductor.config as inductor_config
    from torch._inductor.virtualized import V

    sizevars: Any = V.graph.sizevars
    if hasattr(sizevars, "optimization_hints"):
        sizes = sizevars.optimization_hints(values)
    else:
        fallback = inductor_config.unbacked_symint_fallback
        sizes = sizevars.size_hints(values, fallback=fallback)
    return tuple(int(value) for value in sizes)


@functools.cache
def max_batch_size() -> int | None:
    """The largest batch of the batched template, whose grid's second dimension it is; None from
    2.12 on, where the grid splits it."""
    from torch._inductor.kernel.bmm import bmm_template

    most = 65535
    blocks = {"BLOCK_M": 16, "BLOCK_N": 16}
    return most if bmm_template.grid(most + 1, 16, 16, blocks)[1] > most else None


def config_options() -> dict[str, Any]:
    """Inductor's options by name; each has a `default`."""
    import torch._inductor.config as inductor_config

    return cast("dict[str, Any]", vars(inductor_config)["_config"])


def compiles_in_subprocess() -> bool:
    """True if graphs are compiled in a subprocess, which has no torch-diode."""
    return _fx_compile_mode() == "SUBPROCESS"


def serializes_graphs() -> bool:
    """True if graphs are compiled from a serialized form, here or in a subprocess."""
    return _fx_compile_mode() in ("SERIALIZE", "SUBPROCESS")


def _fx_compile_mode() -> str:
    compile_fx = sys.modules.get("torch._inductor.compile_fx")
    return getattr(getattr(compile_fx, "fx_compile_mode", None), "name", "")


def compiles_ahead() -> bool:
    """True if the graph is compiled for another process (AOTInductor)."""
    from torch._inductor.virtualized import V

    return V.aot_compilation is True or getattr(V.graph, "aot_mode", False) is True


def linear_patterns() -> list[Any]:
    """The patterns by which freezing finds linears and packs their weight; each has a `handler`.

    Registers all of freezing's patterns, as its pass does first of all.
    """
    from torch._inductor.fx_passes import freezing_patterns, mkldnn_fusion

    freezing_patterns.lazy_init()
    check = getattr(mkldnn_fusion, "_is_packable_linear", None)
    entries = [
        entry
        for patterns in freezing_patterns.pass_patterns
        for listed in patterns.patterns.values()
        for entry in listed
        if check is not None and entry.extra_check is check
    ]
    return list({id(entry): entry for entry in entries}.values())


@functools.cache
def packs_float32_for_mkl() -> bool:
    """True if freezing packs float32 weights for MKL, where the number of rows is fixed."""
    import torch

    # Cached: in a compile the operator is called through torch's fake tensors, a quarter of a
    # millisecond each time.
    return bool(torch._C.has_mkl and not torch.ops.mkldnn._is_mkldnn_acl_supported())


def pack_for_onednn(node: Any, a: Any, b: Any, bias: Any, rows: Any) -> None:
    """Replace a linear by oneDNN's on a packed weight: what torch does for 16-bit weights."""
    import torch
    from torch._inductor.fx_passes import mkldnn_fusion

    device_op: Any = mkldnn_fusion._get_mkldnn_device_op("cpu")
    graph = node.graph
    with graph.inserting_before(node):
        weight = graph.call_function(torch.ops.aten.permute.default, (b, (1, 0)))
        packed = device_op.pack_linear_weight(graph, True, weight, rows)
        linear = device_op.pack_linear(graph, True, rows, a, packed, bias)
    node.replace_all_uses_with(linear)
    linear.meta.update(node.meta)
    graph.erase_node(node)


def batch_invariant() -> bool:
    """True if results must not depend on the batch size (an option since 2.13)."""
    import torch._inductor.config as inductor_config

    return bool(getattr(inductor_config, "batch_invariant", False))


def torch_release() -> str:
    """The release of torch, such as 2.13.0."""
    import torch

    return torch.__version__.partition("+")[0]


def takes_slices() -> bool:
    """True if a choice may be a product per matrix of a batch: the lowerings of views fail within
    a choice before 2.13."""
    major, minor = torch_release().split(".")[:2]
    return (int(major), int(minor)) >= (2, 13)


def installed_versions() -> dict[str, str]:
    """The releases of torch and triton, without build tags; empty for one not installed."""
    # Would take a quarter of the time of importing torch_diode.
    from torch_diode.hardware.versions import versions

    return {**versions(), "torch": torch_release()}


def has_triton() -> bool:
    """True if Triton is installed: beside a CPU build of torch it need not be."""
    return bool(installed_versions()["triton"])


def traced_size(value: Any) -> int:
    """A traced size as a number: a symbol's value when the program ran."""
    return int(value.node.hint) if hasattr(value, "node") else int(value)


def traced_size_or_none(value: Any) -> int | None:
    """The same; None for a size that is known only at run time."""
    if not hasattr(value, "node"):
        return int(value)
    hint = getattr(value.node, "hint", None)
    return hint if isinstance(hint, int) else None


def range_of(size: Any) -> str:
    """The range of a dynamic size, such as `2-512` or `2-`; empty for a number."""
    from torch._inductor.virtualized import V

    traced = hasattr(size, "node")
    expression = size.node.expr if traced else size
    if not getattr(expression, "free_symbols", None):
        return ""
    shapes = size.node.shape_env if traced else V.graph.sizevars.shape_env
    bounds = shapes.bound_sympy(expression)
    upper = str(bounds.upper) if str(bounds.upper).isdecimal() else ""
    return f"{bounds.lower}-{upper}"


def fuses_reshaped_epilogues() -> bool:
    """True if templates fuse pointwise ops on reshaped products, as of a linear layer on a batch of
    sequences: not in 2.10 and 2.11, which fuse before they merge loops."""
    from torch._inductor import config

    lossy = torch_release().startswith(("2.10.", "2.11."))
    return not (lossy and config.loop_ordering_after_fusion)


def has_lowering(op: Any) -> bool:
    """True if Inductor generates code for an op instead of calling torch's kernel."""
    from torch._inductor import lowering

    return op in lowering.lowerings and op not in lowering.fallbacks


def reads_template(value: Any, graph: Any) -> bool:
    """True if a lowered value is a matmul template's output or an unrealised loop over one."""
    from torch._inductor import ir

    while isinstance(value, (ir.MutableBox, ir.BaseView)):
        value = value.data
    if isinstance(value, ir.Loops):
        sources = [graph.name_to_buffer.get(name) for name in value.get_read_names()]
    else:
        sources = [value]
    return any(isinstance(source, ir.TemplateBuffer) for source in sources)


def tf32_allowed() -> bool:
    """True if float32 products may use TF32; the older setting raises where the newer was used."""
    precision = _precision()
    return precision == "tf32" if isinstance(precision, str) else precision


def _precision() -> str | bool:
    import torch

    matmul = torch.backends.cuda.matmul
    precision = getattr(matmul, "fp32_precision", None)
    return precision if precision is not None else bool(matmul.allow_tf32)


def offers_tma(mat1: Any, mat2: Any, layout: Any) -> bool:
    """True if Inductor would use its TMA template; adds no guards."""
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
    """The templates' source hashes by name; empty on 2.9, which has none, and until Inductor is
    imported."""
    if "torch._inductor.kernel.mm" not in sys.modules:
        return {}
    import torch._inductor.kernel.bmm as bmm
    import torch._inductor.kernel.mm as mm

    templates = [mm.mm_template, bmm.bmm_template, tma_template()]
    hashes = {t.uid: getattr(t, "src_hash", None) for t in templates if t is not None}
    return {name: text for name, text in hashes.items() if text}


def dataset_provenance(templates: bool = True, **facts: str) -> dict[str, tuple[str, ...]]:
    """The provenance of timings made now: the day, the templates' hashes, and these facts.

    Without `templates`, for timings of ATen alone, Inductor is not imported.
    """
    provenance: dict[str, tuple[str, ...]] = {name: (text,) for name, text in facts.items()}
    provenance["collected"] = (time.strftime("%Y-%m-%d"),)
    if templates:
        import torch._inductor.kernel.mm  # noqa: F401  the hashes are of imported templates

        hashes = template_hashes()
        if hashes:
            provenance["templates"] = tuple(f"{name}={text}" for name, text in hashes.items())
    return provenance


def add_preprocessing(function: Callable[[list[Any]], list[Any]]) -> Callable[[], None]:
    """Pass every list of Inductor's choices through a function; returns the undo function."""
    import torch._inductor.select_algorithm as select

    select.add_preprocessing_fn(function)

    def undo() -> None:
        cache = select.get_algorithm_selector_cache()
        if function in cache.preprocessing_fns:
            cache.preprocessing_fns.remove(function)

    return undo


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


def devices_in(example_inputs: Iterable[Any]) -> list[Any]:
    """The distinct devices of a graph's inputs, in order."""
    devices = (getattr(value, "device", None) for value in example_inputs)
    return list(dict.fromkeys(device for device in devices if device is not None))


def launch_of(choice: Any, inputs: Sequence[Any], out: Any) -> Callable[[], Any]:
    """A function that runs a choice once on these tensors: the call Inductor would benchmark.

    Most choices have a benchmark request that creates it. The others (subgraphs; on 2.9 vendor
    kernels too) pass it to the benchmarker, which is patched to capture it.
    """
    request = getattr(choice, "bmreq", None)
    if request is not None:
        return cast("Callable[[], Any]", request.make_run_fn(*inputs, out=out))
    return _captured_launch(choice, inputs, out)


def _captured_launch(choice: Any, inputs: Sequence[Any], out: Any) -> Callable[[], Any]:
    from unittest import mock

    from torch._inductor.runtime.benchmarking import benchmarker

    calls: list[Callable[[], Any]] = []

    def capture(
        function: Callable[..., Any],
        arguments: Sequence[Any] | None = None,
        keywords: dict[str, Any] | None = None,
        **_: Any,
    ) -> float:
        calls.append(functools.partial(function, *(arguments or ()), **(keywords or {})))
        return 1.0

    with contextlib.ExitStack() as stack:
        for name in ("benchmark", "benchmark_gpu", "benchmark_cpu"):
            stack.enter_context(mock.patch.object(benchmarker, name, capture))
        choice.benchmark(*inputs, out=out)
    if not calls:
        raise MissingPartError(f"{type(choice).__name__} benchmarks itself without torch's help")
    return calls[-1]


def release_launch(choice: Any) -> None:
    """Free what `launch_of` loaded for a choice."""
    request = getattr(choice, "bmreq", None)
    if request is not None:
        request.cleanup_run_fn()
