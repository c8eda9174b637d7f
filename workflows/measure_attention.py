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
from collections.abc import Iterable, Iterator
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
    distance,
    fits_chip,
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
from torch_diode.types.candidate import KernelConfig

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
HEAD_DIMS = ("64", "128", "256", "256x128")
"""As padded; 256x128 is that of DeepSeek's attention, 192 with values of 128."""
_AMPERE = {
    ("forward", "bfloat16", 64): [(128, 64, 3, 4)],
    ("forward", "bfloat16", 128): [(128, 64, 3, 8)],
    ("forward", "bfloat16", 256): [(32, 64, 3, 4), (64, 64, 3, 4), (128, 32, 2, 8)],
    ("forward", "float32", 64): [(128, 32, 3, 4)],
    ("forward", "float32", 128): [(128, 32, 3, 4)],
    ("forward", "float32", 256): [(64, 16, 3, 4)],
    ("backward", "bfloat16", 64): [(64, 64, 64, 64, 2, 4)],
    ("backward", "bfloat16", 128): [(64, 64, 64, 64, 2, 4), (64, 64, 64, 64, 3, 4)],
    ("backward", "bfloat16", 256): [(64, 64, 64, 64, 2, 4)],
}
_HOPPER = {
    ("forward", "bfloat16", 64): [(128, 128, 3, 4)],
    ("forward", "bfloat16", 128): [(128, 64, 3, 8)],
    ("forward", "bfloat16", 256): [(64, 32, 3, 4), (64, 64, 3, 4), (128, 32, 2, 8)],
    ("forward", "float32", 64): [(128, 32, 3, 4)],
    ("forward", "float32", 128): [(32, 64, 3, 4)],
    ("forward", "float32", 256): [(32, 32, 3, 4), (32, 64, 1, 8)],
    ("backward", "bfloat16", 64): [(64, 128, 128, 64, 3, 8)],
    ("backward", "bfloat16", 128): [(64, 128, 128, 64, 3, 8)],
    ("backward", "bfloat16", 256): [(64, 64, 64, 64, 2, 4)],
}
_BLACKWELL = {
    **_HOPPER,
    ("forward", "bfloat16", 256): [(64, 32, 3, 4), (64, 64, 3, 4), (128, 128, 1, 8)],
    ("forward", "float32", 256): [(32, 32, 3, 4), (32, 64, 2, 4)],
    ("backward", "bfloat16", 64): [(64, 128, 128, 64, 3, 4)],
    ("backward", "bfloat16", 128): [(64, 128, 128, 64, 3, 4)],
    ("backward", "bfloat16", 256): [(64, 64, 64, 64, 1, 4), (64, 64, 64, 64, 1, 8)],
}
_GEFORCE = {
    ("forward", "bfloat16", 64): [(128, 64, 2, 4)],
    ("forward", "bfloat16", 128): [(128, 64, 2, 8)],
    ("forward", "bfloat16", 256): [(32, 64, 2, 4), (64, 64, 3, 4)],
    ("forward", "float32", 64): [(128, 32, 2, 4)],
    ("forward", "float32", 128): [(128, 32, 2, 4)],
    ("forward", "float32", 256): [(64, 16, 2, 4)],
    ("backward", "bfloat16", 64): [(64, 64, 64, 64, 2, 4)],
    ("backward", "bfloat16", 128): [(64, 64, 64, 64, 1, 4)],
    ("backward", "bfloat16", 256): [(64, 64, 64, 64, 1, 4)],
}
_OWN = {"sm_90": _HOPPER, "sm_100": _BLACKWELL, "sm_120": _GEFORCE}
"""Inductor's own configs from 2.9 to 2.15, by head dimension as padded; sm_8x has another."""
_OWN_ANYWHERE = {"forward": [], "backward": [(16, 16, 16, 16, 1, 4)], "decode": [(64, 1, 2)]}
_LISTED = {
    "forward": [
        *((128, 64, 3, 4), (128, 128, 3, 4), (128, 128, 2, 8), (128, 128, 1, 8)),
        *((64, 128, 3, 4), (64, 64, 3, 4)),
    ],
    "backward": [(32, 32, 32, 32, 1, 4), (32, 64, 64, 32, 3, 4), (64, 64, 64, 64, 3, 4)],
    "decode": [(64, 3, 2), (32, 3, 2), (128, 3, 2)],
}
"""Those among which it chooses with max-autotune."""
_SPARE = {
    "forward": [(128, 64, 2, 8), (64, 64, 2, 4), (64, 32, 2, 4), (32, 32, 1, 4), (16, 16, 1, 4)],
    "backward": [(64, 64, 64, 64, 1, 4), (32, 32, 32, 32, 1, 4), (16, 16, 16, 16, 1, 4)],
    "decode": [(32, 1, 2), (16, 1, 2)],
}
"""Smaller ones for functions of scores and masks that read tensors, which take memory too."""
_SMALLEST_BLOCK = 16
_MOST_TRIED = 8
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
    start = saved = time.monotonic()
    try:
        for done, (name, config) in enumerate(_wanted(options, kernels), 1):
            kernels.setdefault(name, {})[config] = measure(name, config)
            now = time.monotonic()
            if now - saved > _SAVE_EVERY_S:
                saved = now
                _write(options.output, kernels)
                print(f"{done} kernels in {now - start:.0f} s, {name} {config}", flush=True)
            if now - start > 60 * options.minutes:
                return 1
    finally:
        _write(options.output, kernels)
    print(f"{options.output}: {sum(map(len, kernels.values()))} kernels on file")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--arch", nargs="+", default=list(CHIPS), choices=CHIPS)
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=KINDS)
    parser.add_argument("--precisions", nargs="+", default=list(PRECISIONS), choices=PRECISIONS)
    parser.add_argument("--head-dims", nargs="+", default=HEAD_DIMS, choices=HEAD_DIMS)
    parser.add_argument("--steps", nargs="+", default=list(STEPS), choices=STEPS)
    parser.add_argument("--minutes", type=float, default=120)
    parser.add_argument("--output", type=Path, default=PATH)
    return parser


def _wanted(options: argparse.Namespace, kernels: Kernels) -> Iterator[tuple[str, KernelConfig]]:
    """The kernels not yet on file: Inductor's own, what can take the place of those that do not
    fit, and then those of its lists. Grows with what was measured meanwhile."""
    groups = list(
        itertools.product(options.kinds, options.head_dims, options.arch, options.precisions)
    )
    for step in [STEPS[name] for name in options.steps]:
        for kind, head_dim, arch, precision in groups:
            if "x" in head_dim and (precision != "bfloat16" or kind == "decode"):
                continue
            name = kernel_name(kind, precision, arch, *map(int, head_dim.split("x")))
            for config in step(name, kernels):
                if config not in kernels.get(name, {}):
                    yield name, config


def _configs(kind: str, listed: Iterable[tuple[int, ...]]) -> Iterator[KernelConfig]:
    for *blocks, stages, warps in listed:
        yield KernelConfig(tuple(zip(KINDS[kind], blocks, strict=True)), stages, warps)


def _own(name: str, _: Kernels) -> Iterator[KernelConfig]:
    kind, precision, head_dim, arch = name.split("/")
    key = (kind, precision.replace("tf32", "float32"), int(head_dim.partition("x")[0]))
    own = _OWN.get(arch, _AMPERE).get(key, _OWN_ANYWHERE[kind])
    yield from _configs(kind, own)


def _listed(name: str, _: Kernels) -> Iterator[KernelConfig]:
    """Float32's are as many, but take too long to compile."""
    kind, precision, *_rest = name.split("/")
    yield from _configs(kind, _LISTED[kind] if precision == "bfloat16" else [])


def _replacements(name: str, kernels: Kernels) -> Iterator[KernelConfig]:
    """Ever smaller configs in place of each that does not fit, until one fits."""
    hardware = known(CHIPS[name.split("/")[-1]])
    for config in _own(name, kernels):
        for smaller in [config, *_smaller(config)][: _MOST_TRIED + 1]:
            yield smaller
            if fits_chip(kernels[name][smaller], hardware):
                break


def _spare(name: str, _: Kernels) -> Iterator[KernelConfig]:
    """Of float32 only the smallest two."""
    kind, precision, *_rest = name.split("/")
    yield from _configs(kind, _SPARE[kind] if precision == "bfloat16" else _SPARE[kind][-2:])


STEPS = {"own": _own, "replacements": _replacements, "spare": _spare, "listed": _listed}


def _smaller(config: KernelConfig) -> list[KernelConfig]:
    """Smaller configs by their distance: stages are given up first, then blocks, the two sides of
    a backward together."""
    found = []
    stages = range(config.num_stages, 0, -1)
    halvings = itertools.product(range(4), repeat=min(2, len(config.blocks)))
    for depth, halved in itertools.product(stages, halvings):
        steps = halved if len(config.blocks) < 4 else (*halved, *reversed(halved))
        blocks = [size >> n for (_, size), n in zip(config.blocks, steps, strict=True)]
        divides = len(blocks) < 4 or (blocks[1] >= blocks[0] and blocks[2] >= blocks[3])
        if not divides or (depth, sum(halved)) == (config.num_stages, 0):
            continue
        if min(blocks) >= _SMALLEST_BLOCK:
            names = [block for block, _ in config.blocks]
            pairs = tuple(zip(names, blocks, strict=True))
            found.append(KernelConfig(pairs, depth, config.num_warps))
    return sorted(found, key=lambda each: distance(config, each))


def measure(name: str, config: KernelConfig) -> Row:
    """The resources of one kernel; shared memory of -1 if the compiler rejects it."""
    kind, precision, head_dim, arch = name.split("/")
    torch.set_float32_matmul_precision(PRECISIONS[precision])
    dtype = torch.float32 if precision == "tf32" else getattr(torch, precision)
    with pretend(known(CHIPS[arch])):
        function = attention(kind, options_of(config))
        key, *value = map(int, head_dim.split("x"))
        inputs = attention_inputs(kind, (*_SHAPE, key), dtype, *value)
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
