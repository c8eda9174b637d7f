"""Options of the collecting commands, shared as annotated types; light, since `--help` loads them.

A command lists those it has as its parameters, then `collect_options` and `shape_sampling` turn the
parameters into the arguments of `torch_diode.collect`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from torch_diode.candidates.gpu.eligibility import TRITON_DTYPES
from torch_diode.cli.options.parameters import build, complete
from torch_diode.collection.sampling_options import ShapeSampling
from torch_diode.toolkit.collecting.collect import METHODS, SEARCH_SPACES, CollectOptions
from torch_diode.types import validation
from torch_diode.types.problem import LAYOUTS, OPS

SEARCH_MODES = ("max-autotune",)

Output = Annotated[
    Path,
    typer.Option("--output", "-o", help="File to write (.parquet, .msgpack, .json) or directory."),
]
SearchSpace = Annotated[
    str,
    typer.Option(
        help="Candidates to time: EXHAUSTIVE or DEFAULT.", autocompletion=complete(SEARCH_SPACES)
    ),
]
SearchMode = Annotated[
    str,
    typer.Option(
        help="Mode of torch.compile to compare with: max-autotune.",
        autocompletion=complete(SEARCH_MODES),
    ),
]
Method = Annotated[
    str,
    typer.Option(
        help="sweep: kernels compiled once, in bulk; feedback: through Inductor's autotuning, "
        "slowly. Both with the clean timer.",
        autocompletion=complete(METHODS),
    ),
]
ChunkSize = Annotated[int | None, typer.Option(help="Problems that wait for kernels together.")]
Processes = Annotated[int, typer.Option(help="Compiling processes; 0 for all cores but two.")]
Workers = Annotated[
    int, typer.Option(help="Timing processes; 0 for one on each GPU. A CPU has one.")
]
Threads = Annotated[
    list[int] | None,
    typer.Option(help="Thread counts to time a CPU with, such as 1 2; torch's own by default."),
]
Noise = Annotated[
    float | None,
    typer.Option(
        help="Time the fastest of a problem again until the best time's error is at most this "
        "share of it, such as 0.01."
    ),
]
Libraries = Annotated[
    bool, typer.Option("--libraries", help="On a CPU: library calls only, nothing is compiled.")
]
Ray = Annotated[
    str | None, typer.Option(help="Address of a Ray cluster to time on: auto, or host:6379.")
]
Overwrite = Annotated[bool, typer.Option(help="Replace the output if it exists.")]
ShapeSetFile = Annotated[Path, typer.Option(help="Shape set (JSON).")]
Operations = Annotated[
    list[str] | None,
    typer.Option(help="mm, addmm, bmm, baddbmm.", autocompletion=complete(OPS)),
]
Dtypes = Annotated[
    list[str] | None,
    typer.Option(
        help="bfloat16 (default on a GPU), float16, float32.",
        autocompletion=complete(TRITON_DTYPES),
    ),
]
NumShapes = Annotated[int, typer.Option(help="Problems to draw.")]
LogNormal = Annotated[
    bool,
    typer.Option("--log-normal", help="Sizes by the law of real workloads, and as round as those."),
]
Mean = Annotated[float, typer.Option(help="Mean of the size's natural logarithm.")]
Deviation = Annotated[float, typer.Option(help="Its standard deviation.")]
MinSize = Annotated[int | None, typer.Option(help="Least M, N and K.")]
MaxSize = Annotated[int | None, typer.Option(help="Greatest M, N and K.")]
PowerOfTwo = Annotated[bool, typer.Option("--power-of-two", help="Powers of two only.")]
NoRectangular = Annotated[bool, typer.Option("--no-rectangular", help="M = N = K.")]
NoOddSizes = Annotated[bool, typer.Option("--no-odd-sizes", help="Even sizes only.")]
Layouts = Annotated[
    list[str] | None,
    typer.Option(
        "--layout", help="nn, nt, tn or tt; may be given again.", autocompletion=complete(LAYOUTS)
    ),
]
Tf32 = Annotated[bool, typer.Option("--tf32", help="float32 products in TF32.")]


def collect_options(context: typer.Context, parameters: Mapping[str, Any]) -> CollectOptions:
    """The options of a collection: a command's parameters and the global options."""
    validation.one_of("collect", "search-mode", parameters["search_mode"], SEARCH_MODES)
    shared = context.obj
    return build(
        CollectOptions,
        {**parameters, "threads": tuple(parameters["threads"] or ())},
        seed=shared.seed or 0,
        device=shared.device,
        format=shared.form,
    )


def shape_sampling(parameters: Mapping[str, Any]) -> ShapeSampling:
    """The problems to draw, by a command's parameters."""
    laws = {
        size: (parameters[f"log_normal_{size}_mean"], parameters[f"log_normal_{size}_std"])
        for size in "mnk"
    }
    return ShapeSampling(
        parameters["num_shapes"],
        tuple(parameters["operations"] or ShapeSampling.operations),
        tuple(parameters["dtypes"] or ()),
        tuple(parameters["layouts"] or ShapeSampling.layouts),
        log_normal=parameters["log_normal"],
        min_size=parameters["min_size"],
        max_size=parameters["max_size"],
        power_of_two=parameters["power_of_two"],
        square=parameters["no_rectangular"],
        even=parameters["no_odd_sizes"],
        tf32=parameters["tf32"],
        **laws,
    )
