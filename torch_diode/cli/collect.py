"""`torch-diode collect`: time kernels over generated shapes."""

from __future__ import annotations

import typer

from torch_diode.cli import collect_options as options
from torch_diode.cli import drawing
from torch_diode.cli.drawing import Drawing


def collect(
    context: typer.Context,
    output: options.Output,
    num_shapes: options.NumShapes = 100,
    search_space: options.SearchSpace = "EXHAUSTIVE",
    search_mode: options.SearchMode = "max-autotune",
    log_normal: options.IsLogNormal = False,
    log_normal_m_mean: options.MMean = options.LAW.m[0],
    log_normal_m_std: options.MStd = options.LAW.m[1],
    log_normal_n_mean: options.NMean = options.LAW.n[0],
    log_normal_n_std: options.NStd = options.LAW.n[1],
    log_normal_k_mean: options.KMean = options.LAW.k[0],
    log_normal_k_std: options.KStd = options.LAW.k[1],
    min_size: options.MinSize = None,
    max_size: options.MaxSize = None,
    power_of_two: options.PowerOfTwo = False,
    no_rectangular: options.NoRectangular = False,
    no_odd_sizes: options.NoOddSizes = False,
    operations: options.Operations = None,
    dtypes: options.Dtypes = None,
    layouts: options.Layouts = None,
    tf32: options.Tf32 = False,
    method: options.Method = "sweep",
    chunk_size: options.ChunkSize = None,
    processes: options.Processes = 0,
    overwrite: options.Overwrite = False,
) -> None:
    """Time every candidate on drawn shapes; run again after a kill or Ctrl-C, it continues.

    Example: torch-diode --seed 42 collect --output timings.parquet --num-shapes 100 --log-normal
    """
    wanted = Drawing(
        num_shapes,
        tuple(operations or drawing.OPERATIONS),
        tuple(dtypes or drawing.default_dtypes(context.obj.device)),
        tuple(layouts or ("nn",)),
        log_normal,
        (log_normal_m_mean, log_normal_m_std),
        (log_normal_n_mean, log_normal_n_std),
        (log_normal_k_mean, log_normal_k_std),
        min_size,
        max_size,
        power_of_two,
        no_rectangular,
        no_odd_sizes,
        tf32,
    )
    from torch_diode.cli import collecting

    how = collecting.How(
        output, search_space, search_mode, method, chunk_size, processes, overwrite
    )
    run = collecting.Collecting.of("collect", context, how)
    run.run(wanted.problems(run.hardware, run.seed), wanted.options())
