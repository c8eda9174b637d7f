"""`torch-diode collect`: time kernels on generated shapes."""

from __future__ import annotations

import typer

from torch_diode.cli.console.dataset_statistics import print_collection
from torch_diode.cli.console.progress import ConsoleProgress
from torch_diode.cli.options import collecting as options
from torch_diode.collection.sampling_options import ShapeSampling
from torch_diode.toolkit.collecting.collect import collect as run


def collect(
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
) -> None:
    """Time every candidate on drawn shapes; run again after a kill or Ctrl-C, it continues.

    Example: torch-diode --seed 42 collect --output timings.parquet --num-shapes 100 --log-normal
    """
    given = locals()
    settings, sampling = options.collect_options(context, given), options.shape_sampling(given)
    with ConsoleProgress() as progress:
        result = run(output, sampling, settings, progress=progress)
    print_collection(result)
