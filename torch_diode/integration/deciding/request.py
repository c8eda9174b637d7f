"""One question of Inductor's: which choices for this matmul? And how to word the answer.

Holds what the hook was handed, says which templates are on offer, and turns candidates into the
objects the hook returns.
"""

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
from torch_diode.types.candidate import ATEN, Candidate, TritonGEMMConfig
from torch_diode.types.problem import BATCHED

_offers: WeakKeyDictionary[Any, dict[Any, dict[str, Any]]] = WeakKeyDictionary()
"""By graph: the same few questions come again for each of its matmuls."""


class ReplayableIterator:
    """An iterable read at most once, however often it is gone through.

    Inductor hands out generators; after a failed decision its own list must still be whole.
    """

    def __init__(self, items: Iterable[Any]) -> None:
        self._items = iter(items)

    def __iter__(self) -> Iterator[Any]:
        self._items, copied = itertools.tee(self._items)
        return copied


@dataclass
class ChoiceRequest:
    """What the hook was handed. `listed` is Inductor's own list by template (empty on 2.9)."""

    handler: Any
    op: str
    inputs: Any
    templates: list[Any]
    overrides: Mapping[str, dict[str, Any]]
    listed: Mapping[str, ReplayableIterator] = field(default_factory=dict)
    layout: Any = None

    @cached_property
    def max_autotune(self) -> bool:
        """Whether the user asked for matmuls to be autotuned."""
        return bool(inductor_config.max_autotune or inductor_config.max_autotune_gemm)

    @property
    def device(self) -> Any:
        """Where the matmul runs."""
        return self.inputs.device()

    @property
    def fixed_sizes(self) -> bool:
        """Whether the matmul's sizes are numbers, and no symbols."""
        sizes = [size for node in self.inputs.mat1mat2() for size in node.get_size()]
        return all(isinstance(size, (int, sympy.Integer)) for size in sizes)

    @property
    def expands_bias(self) -> bool:
        """Whether a template's bias is written out to the product's size before it starts: Inductor
        does so with an addmm's of one element, such as the last layer's of a regression."""
        if self.op != "addmm":
            return False
        return all(size == 1 for size in self.inputs.nodes()[0].get_size())

    @cached_property
    def names(self) -> dict[str, Any]:
        """The templates of this very call by the names candidates have; ATen's under one."""
        return {template_name(template): template for template in self.templates}

    @property
    def has_vendor(self) -> bool:
        """Whether the vendor kernel plain torch would run is in this very call."""
        return any(template.uid == f"aten::{self.op}" for template in self.templates)

    @property
    def has_triton(self) -> bool:
        """Whether Triton templates are in this very call."""
        return any(name.startswith("triton::") for name in self.names)

    def offered(self, tma: bool) -> dict[str, Any]:
        """The templates the whole matmul may choose from, by name, whichever call they come in.

        In plain mode Inductor names ATen alone, and some releases split a matmul into several
        calls: what a call does not name is found by the tests Inductor itself makes. `tma` offers
        TMA templates even where only a config keeps them off.
        """
        if tma or inductor_config.triton.enable_persistent_tma_matmul:
            # Whether TMA can be used depends on the operands.
            return self._offered(tma=True)
        known = _offers.get(V.graph)
        if known is None:
            known = _offers[V.graph] = {}
        key = (
            self.op,
            tuple([template.uid for template in self.templates]),
            self._out_dtype,
            self.device,
            self.max_autotune,
            inductor_config.max_autotune_gemm_backends,
            self._batch_fits,
        )
        found = known.get(key)
        if found is None:
            found = known[key] = self._offered(tma=False)
        return found

    def _offered(self, tma: bool) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if inductor_utils.use_aten_gemm_kernels():
            found[ATEN] = None
        if not any(template.uid.endswith("_dtype") for template in self.templates):
            found |= self._triton_templates(tma)
        found |= {name: self.names[name] for name in self.names if name != ATEN}
        if not self._batch_fits:
            found.pop(bmm_template.uid, None)
        return found

    @cached_property
    def _batch_fits(self) -> bool:
        """Whether a batched template can be launched for as many products as Inductor expects."""
        most, batch = torch_compat.max_batch_size(), self.inputs.mat1mat2()[0].get_size()[0]
        if self.op not in BATCHED or most is None:
            return True
        if V.graph.sizevars.statically_known_leq(batch, most):
            return True
        return not free_unbacked_symbols(batch) and torch_compat.hints([batch])[0] <= most

    @cached_property
    def _batch_stays(self) -> bool:
        """The same for as many as there may ever be; where that is not certain, a guard sees to
        it, and for more the graph is compiled again."""
        most, batch = torch_compat.max_batch_size(), self.inputs.mat1mat2()[0].get_size()[0]
        if self.op not in BATCHED or most is None:
            return True
        return bool(V.graph.sizevars.guard_or_false(sympy.Le(batch, most)))

    def _triton_templates(self, tma: bool) -> dict[str, Any]:
        layout = self._fixed_layout
        if not inductor_utils.use_triton_template(layout, check_max_autotune=False):
            return {}
        if self.op in BATCHED:
            return {bmm_template.uid: bmm_template}
        found = {mm_template.uid: mm_template}
        template = torch_compat.tma_template()
        if template is not None and tma:
            with inductor_config.patch({"triton.enable_persistent_tma_matmul": True}):
                mat1, mat2 = self.inputs.mat1mat2()
                if torch_compat.offers_tma(mat1, mat2, layout):
                    found[template.uid] = template
        return found

    def own(self, name: str) -> list[Any]:
        """Inductor's own choices of the templates with this name."""
        return [
            choice
            for template in self.templates
            if template_name(template) == name
            for choice in self.listed.get(template.uid, ())
        ]

    def unranked(self, ranked: Iterable[str]) -> list[Any]:
        """Inductor's own choices of templates no candidate stands for: passed through."""
        known = {ATEN, *ranked}
        others = [name for name in self.names if name not in known]
        return [choice for name in others for choice in self.own(name)]

    def choice_of(self, candidate: Candidate, template: Any) -> Any:
        """The candidate as the object the hook returns; None where Inductor cannot make it."""
        if not self._batch_stays:
            return None
        base = self._bases.get(candidate.template)
        if base is None:
            base = template_kwargs.shared.of(
                self.handler,
                self._triton_inputs,
                template,
                self.op,
                self.overrides.get(template.uid, {}),
                self._fixed_layout,
            )
            if base is None:
                return None
            self._bases[candidate.template] = base
        assert candidate.config is not None
        kwargs = self._kwargs(base.kwargs, candidate.config)
        return base.make(kwargs, base.extra, base.inputs, self._fixed_layout)

    @cached_property
    def _bases(self) -> dict[str, torch_compat.TemplateKwargs]:
        return {}

    @cached_property
    def _fixed_layout(self) -> Any:
        return torch_compat.fixed_layout(self.inputs, self.layout)

    @property
    def _out_dtype(self) -> Any:
        return self.layout.dtype if self.layout is not None else self.inputs.out_dtype()

    @cached_property
    def _triton_inputs(self) -> Any:
        """The inputs with the bias expanded to the output's size, as Triton templates load it.

        ATen's call of addmm comes with the bias as the user had it, one-dimensional.
        """
        size = list(self._fixed_layout.size)
        if self.op not in WITH_BIAS or list(self.inputs.nodes()[0].get_size()) == size:
            return self.inputs
        bias, mat1, mat2 = self.inputs.nodes()
        view = ir.ExpandView.create(getattr(bias, "data", bias), tuple(size))
        expanded = copy.copy(self.inputs)
        expanded._input_nodes = [realize_inputs(ir.TensorBox(view)), mat1, mat2]
        return expanded

    def _kwargs(self, base: dict[str, Any], config: TritonGEMMConfig) -> dict[str, Any]:
        """Inductor's own keyword arguments with this config in place, and what follows from it."""
        kwargs = {
            **base,
            "BLOCK_M": config.block_m,
            "BLOCK_N": config.block_n,
            "BLOCK_K": config.block_k,
            "GROUP_M": config.group_m,
            "num_stages": config.num_stages,
            "num_warps": config.num_warps,
        }
        if "EVEN_K" in base:
            kwargs["EVEN_K"] = self._k_is_multiple_of(config.block_k)
        for name in template_kwargs.AMD_KWARGS:
            if name in base:
                kwargs[name] = getattr(config, name)
        return kwargs

    def _k_is_multiple_of(self, block_k: int) -> bool:
        """Whether that is certain: a symbol's hint is not enough, and no guard is worth it."""
        k = self.inputs.mat1mat2()[0].get_size()[-1]
        if isinstance(k, (int, sympy.Integer)):
            return int(k) % block_k == 0
        return bool(V.graph.sizevars.statically_known_true(sympy.Eq(Mod(k, block_k), 0)))


def template_name(template: Any) -> str:
    """What candidates call a template of Inductor's: all vendor kernels are `aten`."""
    uid: str = template.uid
    return ATEN if uid.startswith("aten::") else uid
