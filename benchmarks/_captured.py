"""A compiled function as a CUDA graph, so that its kernels can be timed without their launches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torch_diode.types.candidate import Candidate


def captured(fn: Callable[..., Tensor], inputs: list[Tensor]) -> tuple[Callable[[], Any], Tensor]:
    """Capture a compiled function; return the replay function and its result."""
    import torch._inductor.config as inductor_config

    torch.compiler.reset()
    compiled = torch.compile(fn, dynamic=False)
    # A cached graph makes no decision; cached kernels are fine.
    with inductor_config.patch({"fx_graph_cache": False}):
        result = compiled(*inputs).clone()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        compiled(*inputs)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        compiled(*inputs)
    return graph.replay, result


def captured_with(
    fn: Callable[..., Tensor], inputs: list[Tensor], candidate: Candidate
) -> tuple[Callable[[], Any], Tensor]:
    """Capture a compiled function whose matmul runs one given candidate."""
    from torch_diode.integration import registration
    from workflows.measuring.static_kernels import Exactly

    with registration.using(Exactly([candidate]), epilogues=False):
        return captured(fn, inputs)
