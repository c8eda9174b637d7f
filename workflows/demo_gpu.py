#!/usr/bin/env python3
"""The demo's GPU part: compile the transformer for real, with and without torch-diode, each in a
fresh process with empty caches."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

VARIANTS = {
    "plain torch.compile": {"TORCH_DIODE": "0"},
    "with torch-diode": {"TORCH_DIODE": "1"},
    "max-autotune": {"TORCH_DIODE": "0"},
}
REPEATS, REPLAYS = 20, 20
_LINES_TOLD = 20
LARGEST_ERROR = 0.05
"""Tolerance relative to eager's result: bfloat16 through six layers."""


def show() -> None:
    """Measure each variant and print compile and GPU times."""
    from torch_diode.cli.console.output import print_table

    print(
        "1. A transformer (T5-small's encoder, bfloat16), compiled and run on this machine's GPU, "
        "each way\n   from scratch. Max-autotune benchmarks about twenty kernels a matmul: a "
        "minute or two.\n",
        flush=True,
    )
    found = {name: measured(name) for name in VARIANTS}
    base = found["plain torch.compile"]
    rows = [
        (
            name,
            f"{values['compile_s']:.1f}",
            f"{values['gpu_us']:.1f}",
            f"{base['gpu_us'] / values['gpu_us']:.3f}x",
            values["decisions"],
        )
        for name, values in found.items()
    ]
    names = ("", "compile s", "GPU µs a run", "speed", "decisions")
    print_table(names, rows, right="lrrrr")
    print(f"GPU: {base['gpu']}. Launches are not in the GPU times: a CUDA graph is replayed.")
    if not found["with torch-diode"]["decisions"]:
        print(f"torch-diode abstained:\n{found['with torch-diode']['status']}")


def measured(variant: str) -> dict[str, Any]:
    """Measure one variant in a new process."""
    with tempfile.TemporaryDirectory() as folder:
        caches = {
            "TORCHINDUCTOR_CACHE_DIR": f"{folder}/inductor",
            "TRITON_CACHE_DIR": f"{folder}/triton",
        }
        ended = subprocess.run(
            [sys.executable, __file__, "--variant", variant],
            env={**os.environ, **caches, **VARIANTS[variant]},
            capture_output=True,  # Inductor reports every kernel it benchmarks
            text=True,
            check=False,
        )
    if ended.returncode:
        told = "\n".join(ended.stderr.splitlines()[-_LINES_TOLD:])
        sys.exit(f"{told}\ndemo: {variant} ended with {ended.returncode}")
    return dict(json.loads(ended.stdout.splitlines()[-1]))


def measure(variant: str) -> dict[str, Any]:
    """Compile and run the encoder in this process."""
    import torch
    from t5_encoder import TOKENS, VOCABULARY, Encoder

    import torch_diode as td

    torch.manual_seed(0)
    encoder = Encoder().to("cuda", torch.bfloat16).eval()
    tokens = torch.randint(VOCABULARY, (1, TOKENS), device="cuda")
    mode = "max-autotune-no-cudagraphs" if variant == "max-autotune" else None
    # Exclude the compiler's own start, which every process has once.
    torch.compile(lambda x: x + 1)(tokens)
    with torch.no_grad():
        expected = encoder(tokens)
        compiled = torch.compile(encoder, mode=mode)
        torch.cuda.synchronize()
        start = time.perf_counter()
        result = compiled(tokens)
        torch.cuda.synchronize()
        seconds = time.perf_counter() - start
        error = ((result - expected).float().norm() / expected.float().norm()).item()
        if not error < LARGEST_ERROR:
            sys.exit(f"demo: {variant} differs from eager by {error:.1%}")
        gpu_us = graph_us(lambda: compiled(tokens))
    return {
        "gpu": torch.cuda.get_device_name(),
        "compile_s": seconds,
        "gpu_us": gpu_us,
        "decisions": len(td.explain()),
        "status": str(td.status()),
    }


def graph_us(run: Callable[[], Any]) -> float:
    """Median GPU time of a run, captured as a CUDA graph and replayed."""
    import torch

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    samples = []
    for _ in range(REPEATS):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(REPLAYS):
            graph.replay()
        end.record()
        end.synchronize()
        samples.append(start.elapsed_time(end) * 1000 / REPLAYS)
    return statistics.median(samples)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--variant", choices=list(VARIANTS), required=True)
    print(json.dumps(measure(parser.parse_args().variant)))
