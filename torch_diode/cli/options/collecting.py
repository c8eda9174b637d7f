"""Options of the collecting commands; light, since `--help` loads them.

`collect_options` and `shape_sampling` turn a command's parameters into the arguments of
`torch_diode.collect`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import typer

from torch_diode.candidates.gpu.eligibility import TRITON_DTYPES
from torch_diode.cli.options.parameters import OVERWRITE, build, flag, option, options_of, required
from torch_diode.collection.sampling_options import ShapeSampling
from torch_diode.toolkit.collecting.collect import METHODS, SEARCH_SPACES, CollectOptions
from torch_diode.types import validation
from torch_diode.types.problem import LAYOUTS, OPS

SEARCH_MODES = ("max-autotune", "max-autotune-no-cudagraphs")

_OUTPUT = (
    "File to write (.parquet, .msgpack, .json) or directory; matmul_dataset.<format> here if not "
    "given."
)
OUTPUT = option(_OUTPUT, "--output", "-o")
OUTPUT_DATASET = option(_OUTPUT, "--output", "--dataset", "-o")
OUTPUT_VALIDATION = option(
    "File or directory to write; matmul_validation.<format> if not given.", "--output", "-o"
)
SHAPE_SET = required("Shape set (.json, .msgpack, .csv).")
OPERATIONS = option("mm, addmm, bmm, baddbmm.", values=OPS)
DTYPES = option("bfloat16 (default on a GPU), float16, float32.", values=TRITON_DTYPES)

RUN = options_of(
    CollectOptions,
    search_space=option("Candidates to time: EXHAUSTIVE or DEFAULT.", values=SEARCH_SPACES),
    search_mode=option(
        "Mode of torch.compile to compare with: max-autotune, with or without -no-cudagraphs.",
        default=SEARCH_MODES[0],
        values=SEARCH_MODES,
        rare=True,
    ),
    method=option(
        "sweep: kernels compiled once, in bulk; feedback: through Inductor's autotuning, slowly. "
        "Both with the clean timer.",
        values=METHODS,
        rare=True,
    ),
    chunk_size=option("Problems that wait for kernels together.", rare=True),
    processes=option("Compiling processes; 0 for all cores but two.", rare=True),
    workers=option("Timing processes; 0 for one on each GPU. A CPU has one.", rare=True),
    threads=option("Thread counts to time a CPU with, such as 1 2; torch's own by default."),
    libraries_only=option(
        "On a CPU: library calls only, nothing is compiled.", "--libraries", rare=True
    ),
    ray=option("Address of a Ray cluster to time on: auto, or host:6379."),
    overwrite=OVERWRITE,
)
"""Options of a collection, whatever its problems."""

NOISE = options_of(
    CollectOptions,
    noise=option(
        "Time the fastest of a problem again until the best time's error is at most this share of "
        "it, such as 0.01.",
        rare=True,
    ),
)
"""Option of the accuracy of the best times."""

_MEAN, _DEVIATION = "Mean of the size's natural logarithm.", "Its standard deviation."
DRAWING = options_of(
    ShapeSampling,
    num_shapes=option("Problems to draw."),
    log_normal=option("Sizes by the law of real workloads, and as round as those.", "--log-normal"),
    log_normal_m_mean=option(_MEAN, default=ShapeSampling.m[0], rare=True),
    log_normal_m_std=option(_DEVIATION, default=ShapeSampling.m[1], rare=True),
    log_normal_n_mean=option(_MEAN, default=ShapeSampling.n[0], rare=True),
    log_normal_n_std=option(_DEVIATION, default=ShapeSampling.n[1], rare=True),
    log_normal_k_mean=option(_MEAN, default=ShapeSampling.k[0], rare=True),
    log_normal_k_std=option(_DEVIATION, default=ShapeSampling.k[1], rare=True),
    min_size=option("Least M, N and K."),
    max_size=option("Greatest M, N and K."),
    power_of_two=option("Powers of two only.", "--power-of-two", rare=True),
    no_rectangular=flag("M = N = K.", "--no-rectangular", rare=True),
    no_odd_sizes=flag("Even sizes only.", "--no-odd-sizes", rare=True),
    operations=OPERATIONS,
    dtypes=DTYPES,
    layouts=option("nn, nt, tn or tt; may be given again.", "--layout", values=LAYOUTS, rare=True),
    tf32=option("float32 products in TF32.", "--tf32", rare=True),
)
"""Options of the problems to draw."""


def collect_options(context: typer.Context, parameters: Mapping[str, Any]) -> CollectOptions:
    """The options of a collection: a command's parameters and the global options."""
    validation.one_of("collect", "search-mode", parameters["search_mode"], SEARCH_MODES)
    shared = context.obj
    return build(
        CollectOptions, parameters, seed=shared.seed or 0, device=shared.device, format=shared.form
    )


def shape_sampling(parameters: Mapping[str, Any]) -> ShapeSampling:
    """The problems to draw, by a command's parameters."""
    laws = {
        size: (parameters[f"log_normal_{size}_mean"], parameters[f"log_normal_{size}_std"])
        for size in "mnk"
    }
    square, even = parameters["no_rectangular"], parameters["no_odd_sizes"]
    return build(ShapeSampling, parameters, square=square, even=even, **laws)
