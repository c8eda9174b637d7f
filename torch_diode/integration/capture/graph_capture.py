"""Capture of the graphs that a program compiles here, to lower them again for another chip.

The program runs as usual, on this machine's devices. Each graph that reaches Inductor is captured,
and lowered for the other chip afterwards, without running.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import torch
import torch._functorch.config as functorch_config
import torch._inductor.config as inductor_config
from torch.fx import Graph, GraphModule
from torch.fx.node import map_aggregate

from torch_diode.integration import registration
from torch_diode.integration.capture.fake_gpu import Input, Lowered, lower, pretend
from torch_diode.integration.deciding.choice_builder import keep_single_choice
from torch_diode.integration.hooks import torch_compat
from torch_diode.integration.hooks.device_hardware import pretending
from torch_diode.integration.hooks.fallback import fault_of
from torch_diode.integration.settings import Settings
from torch_diode.types.hardware import Hardware

_CONFIG = (
    "max_autotune",
    "max_autotune_gemm",
    "max_autotune_gemm_backends",
    "max_autotune_gemm_search_space",
    "epilogue_fusion",
    "triton.enable_persistent_tma_matmul",
)


@dataclass(frozen=True)
class CapturedGraph:
    """A graph as it reached Inductor, with descriptions of its inputs."""

    module: GraphModule
    inputs: tuple[Input | int, ...]
    """In order; a number for a size that is an input itself."""
    config: Mapping[str, Any]
    """The Inductor config that decisions depend on."""
    settings: Settings | None
    """The settings torch-diode had then; None where it was off."""


class Capture(list[CapturedGraph]):
    """The graphs captured, and the reasons for those that could not be."""

    def __init__(self) -> None:
        super().__init__()
        self.faults: list[str] = []


@contextlib.contextmanager
def capturing() -> Iterator[Capture]:
    """Capture every graph compiled inside the `with`, without caches."""
    graphs = Capture()
    before = inductor_config.post_grad_custom_pre_pass

    def capture(graph: Graph) -> None:
        fault = fault_of(lambda: graphs.append(_captured(graph)))
        if fault:  # the program's own compile goes on
            graphs.faults.append(f"a graph was not captured: {fault}")
        if callable(before):
            before(graph)

    with inductor_config.patch(post_grad_custom_pre_pass=capture), without_caches():
        yield graphs


@contextlib.contextmanager
def without_caches() -> Iterator[None]:
    """Compile inside the `with` whatever is met: a graph from a cache brings no decisions."""
    graphs = inductor_config.patch(fx_graph_cache=False, fx_graph_remote_cache=False)
    with graphs, functorch_config.patch(enable_autograd_cache=False):
        yield


@contextlib.contextmanager
def compiling_as_on(cpu: Hardware) -> Iterator[None]:
    """Compile inside the `with` as on another CPU, without caches."""
    with pretending(cpu), without_caches():
        yield


def lower_on(captured: CapturedGraph, hardware: Hardware) -> Lowered:
    """Lower a graph for this hardware, with the heuristic that is enabled."""
    sizes = {i: value for i, value in enumerate(captured.inputs) if isinstance(value, int)}
    tensors = [value for value in captured.inputs if isinstance(value, Input)]

    def run(*given: torch.Tensor) -> Any:
        others = iter(given)
        arguments = [sizes[i] if i in sizes else next(others) for i in range(len(captured.inputs))]
        return captured.module(*arguments)

    # There is no chip to benchmark on, and one choice needs no benchmark: the annotated single
    # choice if there is one, since this may run before the integration's preprocessing.
    undo = torch_compat.add_preprocessing(lambda choices: keep_single_choice(choices)[:1])
    try:
        with pretend(hardware):
            return lower(run, tensors, captured.config)
    finally:
        undo()


def _captured(graph: Graph) -> CapturedGraph:
    owner = graph.owning_module if graph.owning_module is not None else torch.nn.Module()
    moved = _moved(graph)
    constants = _lift_constants(moved, owner)
    inputs = (*constants, *(_input(n.meta["val"]) for n in graph.find_nodes(op="placeholder")))
    config = inductor_config.get_config_copy()
    return CapturedGraph(
        GraphModule(owner, moved),
        inputs,
        {name: config[name] for name in _CONFIG},
        registration.current_settings(),
    )


def _moved(graph: Graph) -> Graph:
    """A copy that creates its tensors on the GPU."""
    copied = Graph()
    copied.output(copied.graph_copy(graph, {}))
    for node in copied.nodes:
        node.args, node.kwargs = map_aggregate((node.args, node.kwargs), _on_gpu)
    return copied


def _on_gpu(argument: Any) -> Any:
    is_cpu = isinstance(argument, torch.device) and argument.type == "cpu"
    return torch.device("cuda", 0) if is_cpu else argument


def _lift_constants(graph: Graph, owner: torch.nn.Module) -> list[Input | int]:
    """Make inputs of the constants that lie on this machine's device, before the other inputs."""
    lifted: list[Input | int] = []
    for node in graph.find_nodes(op="get_attr"):
        value = attrgetter(node.target)(owner)
        if isinstance(value, torch.Tensor) and value.device.type == "cpu" and value.dim():
            with graph.inserting_before():  # as the first node
                node.replace_all_uses_with(graph.placeholder(f"constant_{len(lifted)}"))
            graph.erase_node(node)
            lifted.insert(0, _input(value))
    return lifted


def _input(value: Any) -> Input | int:
    if isinstance(value, torch.Tensor):
        shape = tuple(map(torch_compat.traced_size, value.shape))
        return Input(shape, value.dtype, tuple(map(torch_compat.traced_size, value.stride())))
    return torch_compat.traced_size(value)
