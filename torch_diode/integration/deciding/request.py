"""Inductor's request for the choices of a matmul: the hook's arguments, the templates on offer, and
the conversion of candidates to choice objects."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import sympy  # type: ignore[import-untyped]
import torch._inductor.config as inductor_config
from torch._inductor import ir
from torch._inductor import utils as inductor_utils
from torch._inductor.kernel.bmm import bmm_template
from torch._inductor.kernel.mm import mm_template
from torch._inductor.select_algorithm import realize_inputs
from torch._inductor.virtualized import V
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols
from torch.utils._sympy.functions import Mod

from torch_diode.integration.deciding import template_kwargs
from torch_diode.integration.deciding.problem import WITH_BIAS
from torch_diode.integration.hooks import torch_compat
from torch_diode.types.candidate import (
    ATEN,
    CPP_GEMM,
    LIBRARIES,
    Candidate,
    CppGEMMConfig,
    TritonGEMMConfig,
)
from torch_diode.types.problem import BATCHED

_offers: WeakKeyDictionary[Any, dict[Any, dict[str, Any]]] = WeakKeyDictionary()
"""By graph: most of its matmuls share their offers."""

_libraries_barred: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
"""By graph: the reason not to call a CPU's libraries. Torch's settings hold for a whole graph, and
reading them takes as long as the rest of a decision."""


class ReplayableIterator:
    """An iterable that reads its source once and can be iterated repeatedly.

    Inductor passes generators; after a failed decision its own list must still be complete.
    """

    def __init__(self, items: Iterable[Any]) -> None:
        self._items = iter(items)

    def __iter__(self) -> Iterator[Any]:
        self._items, copied = itertools.tee(self._items)
        return copied


@dataclass
class ChoiceRequest:
    """The hook's arguments; `listed` is Inductor's own list by template."""

    handler: Any
    op: str
    inputs: Any
    templates: list[Any]
    overrides: Mapping[str, dict[str, Any]]
    listed: Mapping[str, ReplayableIterator] = field(default_factory=dict)
    layout: Any = None

    @cached_property
    def max_autotune(self) -> bool:
        """True if matmuls are autotuned."""
        return bool(inductor_config.max_autotune or inductor_config.max_autotune_gemm)

    @cached_property
    def device(self) -> Any:
        """The device of the matmul."""
        return self.inputs.device()

    @cached_property
    def on_cpu(self) -> bool:
        """True if the matmul runs on a CPU."""
        return bool(self.device.type == "cpu")

    @property
    def has_static_sizes(self) -> bool:
        """True if all sizes are numbers, not symbols."""
        sizes = [size for node in self.inputs.mat1mat2() for size in node.get_size()]
        return all(isinstance(size, (int, sympy.Integer)) for size in sizes)

    @property
    def expands_bias(self) -> bool:
        """True if Inductor expands the bias to the product's size in a kernel before the template:
        an addmm's bias of one element, such as in the last layer of a regression."""
        if self.op != "addmm":
            return False
        return all(size == 1 for size in self.inputs.nodes()[0].get_size())

    @cached_property
    def names(self) -> dict[str, Any]:
        """This call's templates by the names candidates use; all vendor kernels are `aten`."""
        return {template_name(template): template for template in self.templates}

    @property
    def has_vendor(self) -> bool:
        """True if this call has the vendor kernel that plain torch would run."""
        return any(template.uid == f"aten::{self.op}" for template in self.templates)

    @property
    def has_triton(self) -> bool:
        """True if this call has Triton templates."""
        return any(name.startswith("triton::") for name in self.names)

    def offered(self, tma: bool) -> dict[str, Any]:
        """The templates of the whole matmul by name, in whichever call they come.

        In plain mode Inductor lists only ATen, and some releases split a matmul into several calls:
        the other templates are found by Inductor's own tests. `tma` offers TMA templates also where
        torch's config turns them off.
        """
        if self.on_cpu:
            return self._offered(tma=False)
        if tma or inductor_config.triton.enable_persistent_tma_matmul:
            # Not cached: TMA depends on the operands.
            return self._offered(tma=True)
        offers = _offers.get(V.graph)
        if offers is None:
            offers = _offers[V.graph] = {}
        key = (
            self.op,
            tuple([template.uid for template in self.templates]),
            self._out_dtype,
            self.device,
            self.max_autotune,
            inductor_config.max_autotune_gemm_backends,
            self._batch_fits,
        )
        offered = offers.get(key)
        if offered is None:
            offered = offers[key] = self._offered(tma=False)
        return offered

    def _offered(self, tma: bool) -> dict[str, Any]:
        offered: dict[str, Any] = {}
        if inductor_utils.use_aten_gemm_kernels():
            offered[ATEN] = None
        if not any(template.uid.endswith("_dtype") for template in self.templates):
            offered |= self._cpu_libraries() if self.on_cpu else self._triton_templates(tma)
        offered |= {name: self.names[name] for name in self.names if name != ATEN}
        if not self._batch_fits:
            offered.pop(bmm_template.uid, None)
        return offered

    @cached_property
    def _batch_fits(self) -> bool:
        """True if a batched template can be launched for the batch size that Inductor expects."""
        if self._max_batch is None or V.graph.sizevars.statically_known_leq(*self._max_batch):
            return True
        batch, most = self._max_batch
        return not free_unbacked_symbols(batch) and torch_compat.hints([batch])[0] <= most

    @cached_property
    def _batch_always_fits(self) -> bool:
        """The same for every batch size; adds a guard where needed, so that a larger batch compiles
        the graph again."""
        if self._max_batch is None:
            return True
        return bool(V.graph.sizevars.guard_or_false(sympy.Le(*self._max_batch)))

    @cached_property
    def _max_batch(self) -> tuple[Any, int] | None:
        """The batch size and its limit; None where there is none."""
        if self.op not in BATCHED or (most := torch_compat.max_batch_size()) is None:
            return None
        return self.inputs.mat1mat2()[0].get_size()[0], most

    def frozen_choice_of(self, candidate: Candidate) -> Any:
        """The choice that was made when the graph was frozen; None where it cannot be created."""
        from torch_diode.integration.cpu.cpp_gemm import CppGemmChoice

        if isinstance(candidate.config, CppGEMMConfig):
            return self.choice_of(candidate, CppGemmChoice(candidate.config, self.op == "addmm"))
        library = self._cpu_libraries().get(candidate.template)
        return None if library is None else self.choice_of(candidate, library)

    def _cpu_libraries(self) -> dict[str, Any]:
        from torch_diode.integration.cpu.onednn import library_choices, why_unavailable

        if V.graph not in _libraries_barred:
            _libraries_barred[V.graph] = why_unavailable()
        return {} if _libraries_barred[V.graph] else dict(library_choices(self.inputs, self.op))

    def _triton_templates(self, tma: bool) -> dict[str, Any]:
        layout = self._fixed_layout
        if not inductor_utils.use_triton_template(layout, check_max_autotune=False):
            return {}
        if self.op in BATCHED:
            return {bmm_template.uid: bmm_template}
        templates = {mm_template.uid: mm_template}
        template = torch_compat.tma_template()
        if template is not None and tma:
            with inductor_config.patch({"triton.enable_persistent_tma_matmul": True}):
                mat1, mat2 = self.inputs.mat1mat2()
                if torch_compat.offers_tma(mat1, mat2, layout):
                    templates[template.uid] = template
        return templates

    def own(self, name: str) -> list[Any]:
        """Inductor's own choices of the templates with this name."""
        return [
            choice
            for template in self.templates
            if template_name(template) == name
            for choice in self.listed.get(template.uid, ())
        ]

    def unranked(self, ranked: Iterable[str]) -> list[Any]:
        """Inductor's own choices of templates without candidates, which are passed through."""
        others = [name for name in self.names if name not in {ATEN, *ranked}]
        return [choice for name in others for choice in self.own(name)]

    def choice_of(self, candidate: Candidate, template: Any) -> Any:
        """The candidate as a choice object; None where Inductor cannot create it."""
        if not self._batch_always_fits:
            return None
        if candidate.template in LIBRARIES:
            return torch_compat.library_choice(template, self.inputs, self._fixed_layout)
        if candidate.template == CPP_GEMM:
            return torch_compat.library_choice(template, self._expanded_inputs, self._fixed_layout)
        derived = self._derived.get(candidate.template)
        if derived is None:
            derived = template_kwargs.shared.get(
                self.handler,
                self._expanded_inputs,
                template,
                self.op,
                self.overrides.get(template.uid, {}),
                self._fixed_layout,
            )
            if derived is None:
                return None
            self._derived[candidate.template] = derived
        assert candidate.triton is not None
        kwargs = self._kwargs(derived.kwargs, candidate.triton)
        return derived.make(kwargs, derived.extra, derived.inputs, self._fixed_layout)

    @cached_property
    def _derived(self) -> dict[str, torch_compat.TemplateKwargs]:
        return {}

    @cached_property
    def _fixed_layout(self) -> Any:
        return torch_compat.fixed_layout(self.inputs, self.layout)

    @property
    def _out_dtype(self) -> Any:
        return self.layout.dtype if self.layout is not None else self.inputs.out_dtype()

    @cached_property
    def _expanded_inputs(self) -> Any:
        """The inputs with the bias expanded to the output's size, as templates need it; in ATen's
        call of addmm it may be one-dimensional."""
        if self.op not in WITH_BIAS:
            return self.inputs
        return expand_bias(self.inputs, self._fixed_layout)

    def _kwargs(self, derived: dict[str, Any], config: TritonGEMMConfig) -> dict[str, Any]:
        """Derived keyword arguments with this config's, and those that follow from it."""
        kwargs = {
            **derived,
            "BLOCK_M": config.block_m,
            "BLOCK_N": config.block_n,
            "BLOCK_K": config.block_k,
            "GROUP_M": config.group_m,
            "num_stages": config.num_stages,
            "num_warps": config.num_warps,
        }
        if "EVEN_K" in derived:
            kwargs["EVEN_K"] = self._k_is_multiple_of(config.block_k)
        for name in template_kwargs.AMD_KWARGS:
            if name in derived:
                kwargs[name] = getattr(config, name)
        return kwargs

    def _k_is_multiple_of(self, block_k: int) -> bool:
        """True if certain; no guard is added for a symbol."""
        k = self.inputs.mat1mat2()[0].get_size()[-1]
        if isinstance(k, (int, sympy.Integer)):
            return int(k) % block_k == 0
        return bool(V.graph.sizevars.statically_known_true(sympy.Eq(Mod(k, block_k), 0)))


def expand_bias(inputs: Any, layout: Any) -> Any:
    """Kernel inputs whose bias, the first of them, has the output's size."""
    bias, mat1, mat2 = inputs.nodes()
    if list(bias.get_size()) == list(layout.size):
        return inputs
    view = ir.ExpandView.create(getattr(bias, "data", bias), tuple(layout.size))
    expanded = copy.copy(inputs)
    expanded._input_nodes = [realize_inputs(ir.TensorBox(view)), mat1, mat2]
    return expanded


def template_name(template: Any) -> str:
    """A template's name in candidates: `aten` for all vendor kernels."""
    uid: str = template.uid
    return ATEN if uid.startswith("aten::") else uid
