"""Options of the collecting commands; light, since `--help` loads them.

`collect_options` and `shape_sampling` turn a command's parameters into the arguments of
`torch_diode.collect`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from torch_diode.candidates.gpu.eligibility import TRITON_DTYPES
from torch_diode.cli.console.help import MORE
from torch_diode.cli.options.parameters import Overwrite, build, complete
from torch_diode.collection.sampling_options import ShapeSampling
from torch_diode.toolkit.collecting.collect import METHODS, SEARCH_SPACES, CollectOptions
from torch_diode.types import validation
from torch_diode.types.problem import LAYOUTS, OPS

SEARCH_MODES = ("max-autotune", "max-autotune-no-cudagraphs")

_OUTPUT = "File to write (.parquet, .msgpack, .json) or directory; matmul_dataset.<format> here "
Output = Annotated[Path | None, typer.Option("--output", "-o", help=f"{_OUTPUT}if not given.")]
OutputDataset = Annotated[
    Path | None, typer.Option("--output", "--dataset", "-o", help=f"{_OUTPUT}if not given.")
]
OutputValidation = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        help="File or directory to write; matmul_validation.<format> if not given.",
    ),
]
ShapeSetFile = Annotated[Path, typer.Option(help="Shape set (.json, .msgpack, .csv).")]
Operations = Annotated[
    list[str] | None, typer.Option(help="mm, addmm, bmm, baddbmm.", autocompletion=complete(OPS))
]
Dtypes = Annotated[
    list[str] | None,
    typer.Option(
        help="bfloat16 (default on a GPU), float16, float32.",
        autocompletion=complete(TRITON_DTYPES),
    ),
]
Mean = Annotated[
    float, typer.Option(help="Mean of the size's natural logarithm.", rich_help_panel=MORE)
]
Deviation = Annotated[float, typer.Option(help="Its standard deviation.", rich_help_panel=MORE)]


class RunOptions:
    """Options of a collection, whatever its problems."""

    search_space: Annotated[
        str,
        typer.Option(
            help="Candidates to time: EXHAUSTIVE or DEFAULT.",
            autocompletion=complete(SEARCH_SPACES),
        ),
    ] = "EXHAUSTIVE"
    search_mode: Annotated[
        str,
        typer.Option(
            help="Mode of torch.compile to compare with: max-autotune, with or without "
            "-no-cudagraphs.",
            autocompletion=complete(SEARCH_MODES),
            rich_help_panel=MORE,
        ),
    ] = "max-autotune"
    method: Annotated[
        str,
        typer.Option(
            help="sweep: kernels compiled once, in bulk; feedback: through Inductor's autotuning, "
            "slowly. Both with the clean timer.",
            autocompletion=complete(METHODS),
            rich_help_panel=MORE,
        ),
    ] = "sweep"
    chunk_size: Annotated[
        int | None,
        typer.Option(help="Problems that wait for kernels together.", rich_help_panel=MORE),
    ] = None
    processes: Annotated[
        int,
        typer.Option(help="Compiling processes; 0 for all cores but two.", rich_help_panel=MORE),
    ] = 0
    workers: Annotated[
        int,
        typer.Option(
            help="Timing processes; 0 for one on each GPU. A CPU has one.", rich_help_panel=MORE
        ),
    ] = 0
    threads: Annotated[
        list[int] | None,
        typer.Option(help="Thread counts to time a CPU with, such as 1 2; torch's own by default."),
    ] = None
    libraries_only: Annotated[
        bool,
        typer.Option(
            "--libraries",
            help="On a CPU: library calls only, nothing is compiled.",
            rich_help_panel=MORE,
        ),
    ] = False
    ray: Annotated[
        str | None, typer.Option(help="Address of a Ray cluster to time on: auto, or host:6379.")
    ] = None
    overwrite: Overwrite = False


class NoiseOption:
    """Option of the accuracy of the best times."""

    noise: Annotated[
        float | None,
        typer.Option(
            help="Time the fastest of a problem again until the best time's error is at most this "
            "share of it, such as 0.01.",
            rich_help_panel=MORE,
        ),
    ] = None


class DrawingOptions:
    """Options of the problems to draw."""

    num_shapes: Annotated[int, typer.Option(help="Problems to draw.")] = ShapeSampling.num_shapes
    log_normal: Annotated[
        bool,
        typer.Option(
            "--log-normal", help="Sizes by the law of real workloads, and as round as those."
        ),
    ] = False
    log_normal_m_mean: Mean = ShapeSampling.m[0]
    log_normal_m_std: Deviation = ShapeSampling.m[1]
    log_normal_n_mean: Mean = ShapeSampling.n[0]
    log_normal_n_std: Deviation = ShapeSampling.n[1]
    log_normal_k_mean: Mean = ShapeSampling.k[0]
    log_normal_k_std: Deviation = ShapeSampling.k[1]
    min_size: Annotated[int | None, typer.Option(help="Least M, N and K.")] = None
    max_size: Annotated[int | None, typer.Option(help="Greatest M, N and K.")] = None
    power_of_two: Annotated[
        bool, typer.Option("--power-of-two", help="Powers of two only.", rich_help_panel=MORE)
    ] = False
    no_rectangular: Annotated[
        bool, typer.Option("--no-rectangular", help="M = N = K.", rich_help_panel=MORE)
    ] = False
    no_odd_sizes: Annotated[
        bool, typer.Option("--no-odd-sizes", help="Even sizes only.", rich_help_panel=MORE)
    ] = False
    operations: Operations = None
    dtypes: Dtypes = None
    layouts: Annotated[
        list[str] | None,
        typer.Option(
            "--layout",
            help="nn, nt, tn or tt; may be given again.",
            autocompletion=complete(LAYOUTS),
            rich_help_panel=MORE,
        ),
    ] = None
    tf32: Annotated[
        bool, typer.Option("--tf32", help="float32 products in TF32.", rich_help_panel=MORE)
    ] = False


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
