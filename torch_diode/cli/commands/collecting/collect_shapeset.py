"""`torch-diode collect-shapeset`: time kernels on the problems of a shape set."""

from __future__ import annotations

import typer

from torch_diode.cli.console.dataset_statistics import print_collection
from torch_diode.cli.console.progress import ConsoleProgress
from torch_diode.cli.options import collecting as options
from torch_diode.toolkit.collecting.collect import collect, select_problems


def collect_shapeset(
    context: typer.Context,
    shapeset: options.ShapeSetFile,
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
    operations: options.Operations = None,
    dtypes: options.Dtypes = None,
) -> None:
    """Time every candidate on a shape set's problems; run again after a kill, it continues.

    Example: torch-diode collect-shapeset --shapeset shapes.json --output timings.parquet
    """
    settings = options.collect_options(context, locals())
    problems = select_problems(shapeset, operations or (), dtypes or ())
    with ConsoleProgress() as progress:
        result = collect(output, problems, settings, progress=progress)
    print_collection(result)
