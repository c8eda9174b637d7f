#!/usr/bin/env python3
"""Write the shape set of real models: the matmul problems their published dimensions lead to.

The tables in `real_model_dimensions.json` hold the dimensions as the models' papers and
configuration files give them, with settings (tokens, batches, precision) to derive problems for.
The `_real_shapes_*` modules define a table's fields and derive the problems. Nothing is random: the
same tables give the same file. Conventions:

- a linear layer is `x @ w.T` with a row-major `w` (layout nt), addmm if it has a bias;
- its backward is dX = dY @ W (nn) and dW = dY.T @ X (tn);
- GPT-2's published weights are transposed (`Conv1D`): nn forward, nt for dX;
- attention is two batched products, Q @ K.T (nt) and P @ V (nn), over batch times heads; a mask, a
  position bias or ALiBi added to the scores makes a baddbmm of the first (BLOOM, GPT-NeoX, Megatron
  and diffusers call it so; elsewhere it is what the addition folds into);
- `count` is the number of kinds of layers and settings that lead to a problem.

    python workflows/make_real_shapes.py --output diode_datasets/shapes/real_models.json
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from _real_shapes_language import encoders, llm_decode, llm_prefill, mixtures, small_models
from _real_shapes_media import diffusion, speech, vision
from _real_shapes_mlps import recommenders, reinforcement
from _real_shapes_uses import adapters, attention, training

from torch_diode.files.shape_sets import write_shapes
from torch_diode.types.problem import MMShape
from torch_diode.types.shapes import CountedShape, OperationShapeSet

LARGEST_BYTES = 8e9
LARGEST_FLOPS = 4e12
LONGEST_ORIGIN = 100

FAMILIES: dict[str, Callable[[], Iterator[CountedShape]]] = {
    "LLM decode": llm_decode,
    "LLM prefill": llm_prefill,
    "MoE and latent attention": mixtures,
    "text encoders": encoders,
    "small language models": small_models,
    "vision": vision,
    "diffusion": diffusion,
    "speech": speech,
    "recommenders": recommenders,
    "reinforcement learning": reinforcement,
    "attention": attention,
    "training": training,
    "LoRA": adapters,
}


def real_shapes() -> OperationShapeSet:
    """All problems of all families, each once, with counts."""
    return OperationShapeSet.of(_checked(s) for family in FAMILIES.values() for s in family())


def by_family() -> dict[str, int]:
    """Number of problems each family adds to those before it."""
    seen: set[MMShape] = set()
    added = {}
    for name, family in FAMILIES.items():
        before = len(seen)
        seen.update(shape.problem for shape in family())
        added[name] = len(seen) - before
    return added


def _checked(shape: CountedShape) -> CountedShape:
    """Reject a shape that is too large or has no usable name."""
    problem = shape.problem
    if problem.bytes_moved > LARGEST_BYTES or problem.flops > LARGEST_FLOPS:
        raise ValueError(f"{shape.origin}: {problem} is too large to measure")
    if not 0 < len(shape.origin) <= LONGEST_ORIGIN:
        raise ValueError(f"{shape.origin}: got {len(shape.origin)} characters; at most 100")
    return shape


def summary(shapes: OperationShapeSet) -> str:
    """Numbers of problems by op, precision and layout, and by family."""
    kinds = Counter(
        (p.op, p.dtype + (" tf32" if p.tf32 else ""), p.layout) for p in shapes.problems
    )
    layouts = ("nn", "nt", "tn")
    lines = [f"{'op':8} {'dtype':14}" + "".join(f"{x:>6}" for x in layouts)]
    for op, dtype in sorted({kind[:2] for kind in kinds}):
        counts = "".join(f"{kinds[op, dtype, layout]:6}" for layout in layouts)
        lines.append(f"{op:8} {dtype:14}{counts}")
    families = by_family()
    lines += [f"{name:30} {n:5} {n / len(shapes):6.1%}" for name, n in families.items()]
    return "\n".join([*lines, f"{'all':30} {len(shapes):5}"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", type=Path, required=True, help="the shape set to write (JSON)")
    options = parser.parse_args()
    shapes = real_shapes()
    try:
        write_shapes(shapes, options.output)
    except OSError as fault:
        print(f"{options.output}: cannot be written: {fault.strerror}", file=sys.stderr)
        return 2
    print(summary(shapes))
    return 0


if __name__ == "__main__":
    sys.exit(main())
