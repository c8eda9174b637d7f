#!/usr/bin/env python3
"""Shows the main job on any machine: the kernels torch.compile would pick on an H200, and why.

A transformer block is lowered by Inductor itself, as on an H200; no GPU is needed, since nothing
runs. The trained model answers each question Inductor asks about a matmul.
"""

from __future__ import annotations

import torch
from torch.nn.functional import gelu

import torch_diode as td
from torch_diode.hardware import detect, known
from torch_diode.integration.lowering import Input, lower, pretend

TOKENS, HIDDEN, HEADS = 512, 1024, 16
HARDWARE = "nvidia-h200"


def block(
    x: torch.Tensor,
    qkv: torch.Tensor,
    out: torch.Tensor,
    up: torch.Tensor,
    up_bias: torch.Tensor,
    down: torch.Tensor,
) -> torch.Tensor:
    """A transformer block without its norms: the matmuls are what this is about."""
    q, k, v = (x @ qkv.T).view(TOKENS, 3, HEADS, HIDDEN // HEADS).permute(1, 2, 0, 3)
    attention = torch.softmax(torch.bmm(q, k.transpose(1, 2)), dim=-1)
    x = x + torch.bmm(attention, v).transpose(0, 1).reshape(TOKENS, HIDDEN) @ out.T
    return x + gelu(torch.addmm(up_bias, x, up.T)) @ down.T


def main() -> None:
    """Lower the block with a heuristic in place, and show what it decided."""
    inputs = [
        Input((TOKENS, HIDDEN)),
        Input((3 * HIDDEN, HIDDEN)),
        Input((HIDDEN, HIDDEN)),
        Input((4 * HIDDEN, HIDDEN)),
        Input((4 * HIDDEN,)),
        Input((HIDDEN, 4 * HIDDEN)),
    ]
    print(f"This machine: {detect().name}. Lowering a transformer block as on an {HARDWARE}:\n")
    model = td.ModelHeuristic(td.load_model("matmul", hardware=HARDWARE), f"model {HARDWARE}")
    with pretend(known(HARDWARE)), td.using(model):
        lowered = lower(block, inputs)
    print(td.explain())
    print(f"\nInductor's generated code runs: {', '.join(lowered.kernels)}")
    print(f"\n{td.status()}")


if __name__ == "__main__":
    main()
