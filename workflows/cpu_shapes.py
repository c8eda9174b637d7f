#!/usr/bin/env python3
"""Shape sets for collecting on a CPU: training problems, and validation problems of other sizes.

A third are the shapes of real models, as far as a CPU runs them in reasonable time; the others are
log-normal, half of them rounded as real sizes are. No problem of one set has the op and the sizes
of one in the other. Two more sets have linears of at most 64 rows, for which the C++ kernels of
Inductor are timed too. Then collect:

    python workflows/cpu_shapes.py --output-dir shapes
    torch-diode --device cpu collect-shapeset --threads 1 2 --shapeset shapes/train.json \
        --libraries --output train.parquet
    torch-diode --device cpu collect-shapeset --threads 1 2 --shapeset shapes/more-train.json \
        --libraries --output more-train.parquet
    torch-diode --device cpu collect-shapeset --threads 1 2 --shapeset shapes/few-rows-train.json \
        --output few-rows-train.parquet
    torch-diode --device cpu create-validation --threads 1 2 --shapeset shapes/validation.json \
        --output validation.parquet
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from torch_diode.candidates.cpu.cpp_gemm import MOST_ROWS
from torch_diode.collection.shape_sampling import LogNormal, sizes_of
from torch_diode.files.shape_sets import read_shapes, write_shapes
from torch_diode.types.problem import BATCHED, DTYPE_BYTES, MMShape
from torch_diode.types.shapes import CountedShape, OperationShapeSet, ShapeSet

SHAPES = Path(__file__).parents[1] / "diode_datasets/shapes/real_models.json"
OPS = ("mm",) * 4 + ("addmm",) * 4 + ("bmm",) * 2 + ("baddbmm",)
DTYPES = ("float32",) * 6 + ("bfloat16",) * 3 + ("float16",)
LAYOUTS = ("nn", "nt", "nt", "tn")
BATCHES = (2, 4, 8, 12, 16, 32, 64, 96)
REAL_SHARE = 1 / 3
MOST_BYTES = 400e6
MOST_FLOPS = {"float32": 6e9, "bfloat16": 6e9, "float16": 2e8}
"""A CPU without instructions for float16 takes a second for a few hundred million."""
ROWS = (1, 1, 1, 1, 2, 4, 4, 8, 8, 16, 16, 32, 32, 64)
ROUND_ROWS = 0.7
REAL_WEIGHT_SHARE = 0.5
HARD = ("thin", "thin", "batch", "half", "half rows", "rows")
MOST_THIN = 64
LEAST_SLICE = 1 << 22

Owner = dict[object, int]
"""The set that the sizes of a problem belong to: 0 for training, 1 for validation."""
Sets = tuple[list[MMShape], list[MMShape]]


def problems(source: random.Random) -> Iterator[MMShape]:
    """Endless problems, drawn as described above."""
    real = real_models()
    laws = (LogNormal(), LogNormal(rounded=True))
    while True:
        dtype = source.choice(DTYPES)
        if source.random() < REAL_SHARE:
            yield replace(source.choice(real), dtype=dtype, out_dtype=dtype, tf32=False)
            continue
        m, n, k = (min(max(size, 1), 16384) for size in source.choice(laws).sizes(source))
        op, layout = source.choice(OPS), source.choice(LAYOUTS)
        batch = source.choice(BATCHES) if op in BATCHED else 1
        a, b = (letter == "t" for letter in layout)
        yield MMShape(op, m, n, k, batch, dtype, transpose_a=a, transpose_b=b)


def real_models() -> list[MMShape]:
    """Matmuls of real models."""
    return [s.problem for _, shapes in read_shapes(SHAPES).operations for s in shapes.shapes]


def affordable(problem: MMShape) -> bool:
    """True if a CPU of few cores runs it often enough to time it."""
    held = problem.bytes_moved * max(4 / DTYPE_BYTES[problem.dtype], 1)
    return problem.flops <= MOST_FLOPS[problem.dtype] and held <= MOST_BYTES


def draw(train: int, validation: int, seed: int, owner: Owner | None = None) -> Sets:
    """Training and validation problems; which set a size belongs to is decided when it is met."""
    source = random.Random(seed)
    return divided(problems(source), train, validation, source, {} if owner is None else owner)


def divided(
    problems: Iterator[MMShape], train: int, validation: int, source: random.Random, owner: Owner
) -> Sets:
    """Problems of both sets, until each has as many as wanted."""
    sets: tuple[dict[MMShape, None], dict[MMShape, None]] = ({}, {})
    share = validation / (train + validation)
    wanted = (train, validation)
    for problem in problems:
        if all(len(chosen) >= most for chosen, most in zip(sets, wanted, strict=True)):
            break
        number = owner.setdefault(sizes_of(problem), int(source.random() < share))
        if affordable(problem) and len(sets[number]) < wanted[number]:
            sets[number][problem] = None
    return list(sets[0]), list(sets[1])


def few_rows(train: int, validation: int, seed: int, owner: Owner) -> Sets:
    """Float32 linears of few rows: half with the weights of real models, half log-normal."""
    source = random.Random(f"few rows {seed}")
    real = [problem for problem in real_models() if problem.op not in BATCHED]

    def problems() -> Iterator[MMShape]:
        while True:
            _, n, k = (min(max(size, 8), 16384) for size in LogNormal(rounded=True).sizes(source))
            if source.random() < REAL_WEIGHT_SHARE:
                weight = source.choice(real)
                n, k = weight.N, weight.K
            rows = source.choice(ROWS) if source.random() < ROUND_ROWS else _any_rows(source)
            op, layout = source.choice(("mm", "addmm")), source.choice(("nn", "nt"))
            yield MMShape(op, rows, n, k, dtype="float32", transpose_b=layout == "nt")

    return divided(problems(), train, validation, source, owner)


def hard(count: int, seed: int, owner: Owner) -> list[MMShape]:
    """Training problems of the kinds on which libraries change places most often: a thin K, a few
    large matrices in a batch, few rows, and bfloat16."""
    source = random.Random(f"hard {seed}")
    law = LogNormal(rounded=True)

    def problems() -> Iterator[MMShape]:
        while True:
            m, n, k = (min(max(size, 1), 16384) for size in law.sizes(source))
            layout, kind = source.choice(LAYOUTS), source.choice(HARD)
            op, batch, dtype = source.choice(("mm", "addmm")), 1, "float32"
            if "rows" in kind:
                m = source.choice(ROWS) if source.random() < ROUND_ROWS else _any_rows(source)
            if kind == "thin":
                k = round(MOST_THIN ** source.random())
            elif kind == "batch":
                op, batch = source.choice(("bmm", "bmm", "baddbmm")), source.randint(2, 32)
                k = round(1024 ** source.random())
                if m * n * k < LEAST_SLICE:
                    continue
            elif "half" in kind:
                dtype = "bfloat16"
            a, b = (letter == "t" for letter in layout)
            yield MMShape(op, m, n, k, batch, dtype, transpose_a=a, transpose_b=b)

    return divided(problems(), count, 0, source, owner)[0]


def has_few_rows(problem: MMShape) -> bool:
    """True if kernels of the C++ template can run it."""
    linear = problem.op not in BATCHED and problem.dtype == "float32" and not problem.transpose_a
    return linear and problem.M <= MOST_ROWS and problem.bias != "matrix"


def _any_rows(source: random.Random) -> int:
    return round(MOST_ROWS ** source.random())


def shape_set(chosen: list[MMShape]) -> OperationShapeSet:
    """The problems by operation."""
    ops = dict.fromkeys(problem.op for problem in chosen)
    return OperationShapeSet(
        tuple((op, ShapeSet(tuple(CountedShape(p) for p in chosen if p.op == op))) for op in ops)
    )


def main() -> None:
    """Write both shape sets."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--train", type=int, default=3200)
    parser.add_argument("--validation", type=int, default=400)
    parser.add_argument("--more", type=int, default=3200, help="drawn last, for training")
    parser.add_argument("--few-rows", type=int, nargs=2, default=[140, 40], metavar="N")
    parser.add_argument("--more-few-rows", type=int, default=480, help="for training too")
    parser.add_argument("--hard", type=int, default=1400, help="for training too")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output-dir", type=Path, default=Path("shapes"))
    given = parser.parse_args()
    given.output_dir.mkdir(parents=True, exist_ok=True)
    owner: Owner = {}
    train, validation = draw(given.train, given.validation, given.seed, owner)
    few_train, few_validation = few_rows(*given.few_rows, given.seed, owner)
    more, _ = draw(given.more, 0, given.seed + 1, owner)
    more_few, _ = few_rows(given.more_few_rows, 0, given.seed + 1, owner)
    sets = {
        "train": train,
        "more-train": [problem for problem in more if problem not in set(train)],
        "few-rows-train": few_train,
        "more-few-rows": [problem for problem in more_few if problem not in set(few_train)],
        "hard": hard(given.hard, given.seed, owner),
        "few-rows-one-thread": few_train[::2],
        "validation": [p for p in validation if not has_few_rows(p)],
        "few-rows-validation": list(
            dict.fromkeys([*few_validation, *filter(has_few_rows, validation)])
        ),
    }
    for name, chosen in sets.items():
        write_shapes(shape_set(chosen), given.output_dir / f"{name}.json")
        print(f"{given.output_dir / name}.json: {len(chosen)} problems")


if __name__ == "__main__":
    main()
