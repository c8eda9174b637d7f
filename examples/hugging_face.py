#!/usr/bin/env python3
"""Speed up a Hugging Face model: `import torch_diode`, and `torch.compile` as always.

On a GPU that torch-diode has a model for, it shows compile and run times with and without.
Anywhere, `torch-diode explain --hardware nvidia-h200 examples/hugging_face.py` shows which kernels
an H200 would run. Weights are random: nothing is downloaded.
"""

from __future__ import annotations

import statistics
import sys
import time

import torch
import torch.compiler.config

import torch_diode

try:
    from transformers import LlamaConfig, LlamaForCausalLM
except ImportError:
    sys.exit("hugging_face.py: transformers is not installed; pip install transformers")

ON_GPU = torch.cuda.is_available()
NAMES = ("hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads")
SIZES = (2048, 8192, 32, 8) if ON_GPU else (64, 128, 4, 2)
WARM_UP, AT_ONCE = (50, 20) if ON_GPU else (1, 1)


def main() -> None:
    torch.manual_seed(0)
    # On a GPU, four layers with the dimensions of Llama-3.2-1B.
    sizes = dict(zip(NAMES, SIZES, strict=True))
    config = LlamaConfig(vocab_size=1000, num_hidden_layers=4 if ON_GPU else 1, **sizes)
    model = LlamaForCausalLM(config).eval()
    if ON_GPU:
        model = model.to("cuda", torch.bfloat16)
    tokens = torch.randint(config.vocab_size, (1, 512 if ON_GPU else 16), device=model.device)
    torch.compile(lambda x: x + 1)(tokens)
    if ON_GPU:
        torch.compiler.config.force_disable_caches = True  # both compile from scratch
        torch_diode.disable()
        measure("without torch-diode", model, tokens)
        torch_diode.enable()
    measure("with torch-diode", model, tokens)
    print(torch_diode.explain())
    if not torch_diode.explain():
        print("torch-diode has no model for this hardware, so torch decided.")


@torch.no_grad()
def measure(label: str, model: LlamaForCausalLM, tokens: torch.Tensor) -> None:
    """Print the time of the first call, and the median of later ones."""
    torch.compiler.reset()
    compiled = torch.compile(model, mode="reduce-overhead" if ON_GPU else None)
    first = seconds(compiled, tokens)
    seconds(compiled, tokens, WARM_UP)
    runs = [seconds(compiled, tokens, AT_ONCE) for _ in range(20)]
    print(f"{label}: compiled in {first:.1f} s, a run takes {statistics.median(runs) * 1e3:.3f} ms")


def seconds(compiled: LlamaForCausalLM, tokens: torch.Tensor, runs: int = 1) -> float:
    """Mean time of several consecutive runs, so that the GPU does not wait for Python."""
    start = time.perf_counter()
    for _ in range(runs):
        logits = compiled(input_ids=tokens, use_cache=False).logits
    logits[0, -1, 0].item()
    return (time.perf_counter() - start) / runs


if __name__ == "__main__":
    main()
