"""Compile Inductor's flex attention kernels for several chips and record their resources.

Needs no GPU, but a CUDA build of torch, 2.10 or later. All of it is some twenty minutes on one
core; it writes as it goes and skips kernels already in the file, so it can be stopped and resumed.

    python workflows/measure_attention.py
    python workflows/measure_attention.py --arch sm_89 --kinds forward --minutes 2
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import triton

from torch_diode.candidates.gpu.attention import (
    KINDS,
    NEEDS,
    PATH,
    VERSION,
    Row,
    configs_of,
    kernel_name,
    read_measured,
)
from torch_diode.collection.kernels.compile import resource_usage
from torch_diode.files.atomic import write_text
from torch_diode.hardware import known
from torch_diode.integration.capture.attention import (
    attention,
    attention_inputs,
    compiled_attention,
    lowered_here,
    options_of,
)
from torch_diode.integration.capture.fake_gpu import lower, pretend
from torch_diode.types.kernel_config import KernelConfig

CHIPS = {
    "sm_89": "nvidia-geforce-rtx-4090",
    "sm_86": "nvidia-geforce-rtx-3090",
    "sm_80": "nvidia-a100",
    "sm_90": "nvidia-h100",
    "sm_100": "nvidia-b200",
    "sm_120": "nvidia-geforce-rtx-5090",
}
PRECISIONS = {"bfloat16": "highest", "float32": "highest", "tf32": "high"}
"""Precisions, and torch's setting for each."""
HEAD_DIMS = (64, 128, 256)
_FORWARD = {
    "bfloat16": [
        *((128, 64, 3, 8), (128, 64, 3, 4), (128, 64, 2, 8), (128, 64, 2, 4), (128, 128, 3, 4)),
        *((128, 128, 2, 8), (128, 128, 1, 8), (64, 128, 3, 4), (64, 64, 3, 4), (64, 32, 3, 4)),
        *((32, 64, 3, 4), (32, 64, 2, 4), (128, 32, 2, 8)),
    ],
    "float32": [
        *((128, 32, 3, 4), (128, 32, 2, 4), (32, 64, 3, 4), (32, 64, 2, 4), (32, 64, 1, 8)),
        *((32, 32, 3, 4), (64, 16, 3, 4), (64, 16, 2, 4), (64, 64, 3, 4), (32, 16, 3, 4)),
    ],
}
_BACKWARD = {
    "bfloat16": [
        *((64, 64, 64, 64, stages, 4) for stages in (3, 2, 1, 4, 5)),
        *((64, 128, 128, 64, 3, 8), (64, 128, 128, 64, 3, 4), (64, 64, 64, 64, 1, 8)),
        *((32, 64, 64, 32, stages, 4) for stages in (1, 3, 4, 5)),
        *((32, 32, 32, 32, stages, 4) for stages in (1, 3, 4, 5)),
        *((32, 128, 128, 32, 3, 4), (16, 16, 16, 16, 1, 4)),
    ],
    "float32": [(16, 16, 16, 16, 1, 4), (32, 32, 32, 32, 1, 4), (32, 32, 32, 32, 3, 4)],
}
_DECODE = [(64, 1, 2), (64, 3, 2), (32, 3, 2), (128, 3, 2), (16, 1, 2)]
_USED = {
    "forward": _FORWARD,
    "backward": _BACKWARD,
    "decode": {"bfloat16": _DECODE, "float32": _DECODE},
}
"""The configs that some release of Inductor uses on some chip, by kind and precision."""
_SMALLER = {
    "forward": {
        "bfloat16": [
            *((64, 64, 2, 4), (64, 64, 1, 4), (64, 32, 2, 4), (64, 32, 1, 4), (32, 64, 1, 4)),
            *((32, 32, 3, 4), (32, 32, 2, 4), (32, 32, 1, 4), (128, 32, 3, 4), (128, 32, 2, 4)),
            *((128, 32, 1, 4), (128, 64, 1, 8), (128, 64, 1, 4), (32, 16, 1, 4), (16, 16, 1, 4)),
        ],
        "float32": [
            *((64, 32, 3, 4), (64, 32, 2, 4), (64, 32, 1, 4), (64, 16, 1, 4), (32, 64, 1, 4)),
            *((32, 32, 2, 4), (32, 32, 1, 4), (32, 16, 2, 4), (32, 16, 1, 4), (16, 16, 1, 4)),
        ],
    },
    "backward": {
        "bfloat16": [(32, 64, 64, 32, 2, 4), (32, 32, 32, 32, 2, 4), (16, 32, 32, 16, 1, 4)],
        "float32": [(16, 16, 16, 16, 1, 2)],
    },
    "decode": {
        "bfloat16": [(64, 2, 2), (32, 2, 2), (32, 1, 2), (16, 3, 2), (16, 2, 2)],
        "float32": [(64, 2, 2), (32, 2, 2), (32, 1, 2), (16, 3, 2), (16, 2, 2)],
    },
}
"""What may take their place where they do not fit."""
_SHAPE = (2, 8, 4096)
_SAVE_EVERY_S = 20.0

Kernels = dict[str, dict[KernelConfig, Row]]


def main() -> int:
    """Run; exit code 0 only if every requested kernel was compiled or refused by the compiler."""
    options = _parser().parse_args()
    reason = lowered_here()
    if reason:
        print(f"torch {torch.__version__}: {reason}", file=sys.stderr)
        return 2
    kernels = _already(options.output)
    wanted = [each for each in _wanted(options) if each[1] not in kernels.get(each[0], {})]
    print(f"{options.output}: {sum(map(len, kernels.values()))} on file, {len(wanted)} to compile")
    start = saved = time.monotonic()
    try:
        for done, (name, config) in enumerate(wanted, 1):
            kernels.setdefault(name, {})[config] = measure(name, config)
            now = time.monotonic()
            if now - saved > _SAVE_EVERY_S or done == len(wanted):
                saved = now
                _write(options.output, kernels)
                print(f"{done}/{len(wanted)} in {now - start:.0f} s", flush=True)
            if now - start > 60 * options.minutes:
                return 1
    finally:
        _write(options.output, kernels)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--arch", nargs="+", default=list(CHIPS), choices=CHIPS)
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=KINDS)
    parser.add_argument("--precisions", nargs="+", default=list(PRECISIONS), choices=PRECISIONS)
    parser.add_argument("--head-dims", nargs="+", type=int, default=HEAD_DIMS)
    parser.add_argument("--minutes", type=float, default=120)
    parser.add_argument("--output", type=Path, default=PATH)
    return parser


def _wanted(options: argparse.Namespace) -> Iterator[tuple[str, KernelConfig]]:
    """Kernels by name and config: what Inductor itself uses anywhere first."""
    chosen = (options.kinds, options.precisions, options.head_dims, options.arch)
    for listed in (_USED, _SMALLER):
        for kind, precision, head_dim, arch in itertools.product(*chosen):
            name = kernel_name(kind, precision, head_dim, arch)
            for *blocks, stages, warps in listed[kind][precision.replace("tf32", "float32")]:
                pairs = tuple(zip(KINDS[kind], blocks, strict=True))
                yield name, KernelConfig(pairs, stages, warps)


def measure(name: str, config: KernelConfig) -> Row:
    """The resources of one kernel; shared memory of -1 if the compiler rejects it."""
    kind, precision, head_dim, arch = name.split("/")
    torch.set_float32_matmul_precision(PRECISIONS[precision])
    dtype = torch.float32 if precision == "tf32" else getattr(torch, precision)
    with pretend(known(CHIPS[arch])):
        function = attention(kind, options_of(config))
        inputs = attention_inputs(kind, (*_SHAPE, int(head_dim)), dtype)
        source = lower(function, inputs).source
        try:
            compiled = compiled_attention(source)
        except (RuntimeError, triton.compiler.errors.CompilationError) as error:
            print(f"refused: {name} {config}: {str(error)[:200]}", file=sys.stderr)
            return (-1, 0, 0)
    return (compiled.metadata.shared, *resource_usage(compiled.asm["cubin"]))


def _already(path: Path) -> Kernels:
    if not path.is_file():
        return {}
    return {
        name: dict(configs_of(name.partition("/")[0], rows))
        for name, rows in read_measured(path).items()
    }


def _write(path: Path, kernels: Kernels) -> None:
    """Write one kernel per line, sorted, atomically."""
    head: dict[str, Any] = {
        "version": VERSION,
        "about": "Flex attention kernels, compiled: blocks, num_stages, num_warps, then the needs.",
        "measured_with": {"torch": torch.__version__, "triton": triton.__version__},
        "needs": NEEDS,
    }
    lines = []
    for name in sorted(kernels):
        rows = sorted([*config.sizes, *needs] for config, needs in kernels[name].items())
        text = ",\n".join(f"   {json.dumps(row, separators=(',', ':'))}" for row in rows)
        lines.append(f'  "{name}": [\n{text}\n  ]')
    text = json.dumps(head, indent=1)[:-2] + ',\n "kernels": {\n' + ",\n".join(lines) + "\n }\n}\n"
    write_text(path, text)


if __name__ == "__main__":
    sys.exit(main())
