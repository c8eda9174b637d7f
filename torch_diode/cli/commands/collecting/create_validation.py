"""`torch-diode create-validation`: collect a dataset that shares no problem with training."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from torch_diode.cli.console.dataset_statistics import print_collection
from torch_diode.cli.console.progress import ConsoleProgress
from torch_diode.cli.options import collecting as options
from torch_diode.collection.sampling_options import ShapeSampling
from torch_diode.toolkit.collecting.collect import select_problems


def create_validation(
    context: typer.Context,
    output: options.Output,
    search_space: options.SearchSpace = "EXHAUSTIVE",
    search_mode: options.SearchMode = "max-autotune",
    method: options.Method = "sweep",
    chunk_size: options.ChunkSize = None,
    processes: options.Processes = 0,
    workers: options.Workers = 0,
    threads: options.Threads = None,
    noise: options.Noise = None,
    libraries_only: options.Libraries = False,
    ray: options.Ray = None,
    overwrite: options.Overwrite = False,
    num_shapes: options.NumShapes = ShapeSampling.num_shapes,
    log_normal: options.LogNormal = False,
    log_normal_m_mean: options.Mean = ShapeSampling.m[0],
    log_normal_m_std: options.Deviation = ShapeSampling.m[1],
    log_normal_n_mean: options.Mean = ShapeSampling.n[0],
    log_normal_n_std: options.Deviation = ShapeSampling.n[1],
    log_normal_k_mean: options.Mean = ShapeSampling.k[0],
    log_normal_k_std: options.Deviation = ShapeSampling.k[1],
    min_size: options.MinSize = None,
    max_size: options.MaxSize = None,
    power_of_two: options.PowerOfTwo = False,
    no_rectangular: options.NoRectangular = False,
    no_odd_sizes: options.NoOddSizes = False,
    operations: options.Operations = None,
    dtypes: options.Dtypes = None,
    layouts: options.Layouts = None,
    tf32: options.Tf32 = False,
    shapeset: Annotated[
        Path | None, typer.Option(help="Shape set (JSON) to take problems from.")
    ] = None,
    exclude: Annotated[
        list[Path] | None,
        typer.Option(
            help="Dataset to share no problem with, may be given again; without it, all in the "
            "working directory, beside the output and beside its folder, and in folders there."
        ),
    ] = None,
) -> None:
    """Collect a validation set: drawn shapes, or a shape set's, that no training data has.

    It prints the datasets it compared with. No seed draws the shapes that `collect` draws with it.

    Example: torch-diode --seed 43 create-validation --output validation.parquet --num-shapes 50
    """
    given = locals()
    settings, sampling = options.collect_options(context, given), options.shape_sampling(given)
    listed = shapeset and select_problems(shapeset, operations or (), dtypes or ())
    from torch_diode.toolkit.collecting.create_validation import create_validation as run

    with ConsoleProgress() as progress:
        result = run(output, listed or sampling, settings, exclude=exclude or (), progress=progress)
    print_collection(result)
