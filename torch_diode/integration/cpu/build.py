"""A kernel of the C++ template outside a compile: for timing, and for a first run in a process of
its own."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

import torch
import torch._inductor.config as inductor_config
from torch import Tensor
from torch._inductor.choices import InductorChoices
from torch._inductor.compile_fx import compile_fx_inner
from torch._inductor.virtualized import V

from torch_diode.integration.cpu.cpp_gemm import CppGemmChoice
from torch_diode.integration.deciding.request import expand_bias
from torch_diode.integration.hooks import torch_compat
from torch_diode.types.candidate import CppGEMMConfig
from torch_diode.types.errors import InvalidValueError
from torch_diode.types.problem import MMShape


@dataclass(frozen=True)
class BuiltKernel:
    """A compiled kernel: `run(a, pack(b), bias)` computes the problem it was built for.

    Other weights of the same shape can be packed, so that one kernel streams many of them.
    """

    pack: Callable[[Tensor], Tensor]
    """From B to the layout that the kernel reads."""
    run: Callable[..., Tensor]
    """Takes A, the packed B and, for addmm, the bias; called as the compiled graph calls it."""


def build(problem: MMShape, config: CppGEMMConfig, threads: int = 0) -> BuiltKernel:
    """Compile the kernel that Inductor would emit for a problem with a constant B.

    `threads` are compiled into it, by default torch's own number. Takes about two seconds, and is
    read from Inductor's cache the next time. Raises where the template cannot run the problem.
    """
    if problem.dtype != "float32" or problem.transpose_a or problem.op not in ("mm", "addmm"):
        raise InvalidValueError(
            f"build: got {problem}; expected mm or addmm in float32 with a row-major A"
        )
    graph, inputs = _graph(problem)
    settings: dict[str, Any] = {"fx_graph_cache": False}
    if threads:
        settings["cpp.threads"] = threads
    handler = V.set_choices_handler(_OnlyChoice(config))
    with handler, inductor_config.patch(settings), torch.no_grad():
        compiled: Any = compile_fx_inner(graph, inputs)
    return _built(compiled, problem, config)


def _built(compiled: Any, problem: MMShape, config: CppGEMMConfig) -> BuiltKernel:
    call = compiled.current_callable
    names = call.__globals__
    (weight,) = [name for name, value in names.items() if _is_panels(value, problem, config)]
    # Torch keeps the compiled module as long as the process runs, but need not keep the weight.
    names[weight] = None
    padding = -problem.N % config.block_n

    def pack(b: Tensor) -> Tensor:
        padded = torch.nn.functional.pad(b, (0, padding))
        return padded.reshape(problem.K, -1, config.block_n).transpose(0, 1).contiguous()

    def run(a: Tensor, packed: Tensor, bias: Tensor | None = None) -> Tensor:
        names[weight] = packed
        result: Tensor = call([a] if bias is None else [bias, a])[0]
        names[weight] = None
        return result

    return BuiltKernel(pack, run)


def _is_panels(value: Any, problem: MMShape, config: CppGEMMConfig) -> bool:
    panels = -(-problem.N // config.block_n)
    return isinstance(value, Tensor) and value.shape == (panels, problem.K, config.block_n)


def _graph(problem: MMShape) -> tuple[torch.fx.GraphModule, list[Tensor]]:
    """The problem as a graph with a constant B, and inputs to compile it for."""
    graph = torch.fx.Graph()
    root = torch.nn.Module()
    size = (problem.N, problem.K) if problem.transpose_b else (problem.K, problem.N)
    weight = torch.zeros(size)
    root.register_buffer("weight", weight.t() if problem.transpose_b else weight)
    inputs = [torch.zeros(problem.N)] if problem.op == "addmm" else []
    inputs.append(torch.zeros(problem.M, problem.K))
    nodes = [graph.placeholder(f"input{i}") for i in range(len(inputs))]
    op = getattr(torch.ops.aten, problem.op).default
    graph.output((graph.call_function(op, (*nodes, graph.get_attr("weight"))),))
    return torch.fx.GraphModule(root, graph), inputs


class _OnlyChoice(InductorChoices):
    """Gives every matmul to the template."""

    decides_alone = True
    """No heuristic is asked."""

    def __init__(self, config: CppGEMMConfig) -> None:
        super().__init__()
        self._config = config

    def _finalize_template_configs(
        self, template_choices: Any, kernel_inputs: Any, templates: Any, op_name: str, *_: Any
    ) -> list[Any]:
        return [self._choice(kernel_inputs, op_name, None)]

    def get_mm_configs(
        self, kernel_inputs: Any, layout: Any, templates: Any, op_name: str, *_: Any
    ) -> Generator[Any, None, None]:
        """The hook of 2.9."""
        yield self._choice(kernel_inputs, op_name, layout)

    def _choice(self, inputs: Any, op: str, layout: Any) -> Any:
        fixed = torch_compat.fixed_layout(inputs, layout)
        if op == "addmm":
            inputs = expand_bias(inputs, fixed)
        return torch_compat.library_choice(
            CppGemmChoice(self._config, op == "addmm"), inputs, fixed
        )
