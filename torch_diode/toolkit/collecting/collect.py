"""Collecting: time every candidate on many problems and write the timings as a dataset."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from torch_diode.candidates.gpu.eligibility import TRITON_DTYPES
from torch_diode.collection.devices import is_cpu
from torch_diode.collection.sampling_options import ShapeSampling
from torch_diode.files.shape_sets import read_shapes
from torch_diode.toolkit.progress import ProgressCallback, log_progress
from torch_diode.types import validation
from torch_diode.types.errors import EmptySelectionError, InvalidValueError
from torch_diode.types.problem import OPS, MMShape
from torch_diode.types.shapes import OperationShapeSet, ShapeSet

if TYPE_CHECKING:
    from torch_diode.types.dataset import Dataset

SEARCH_SPACES = ("EXHAUSTIVE", "DEFAULT")
METHODS = ("sweep", "feedback")

ProblemList = ShapeSet | OperationShapeSet | Sequence[MMShape] | str | os.PathLike[str]
"""Problems one by one: a shape set, its file, or any sequence of problems."""


@dataclass(frozen=True)
class CollectOptions:
    """Options of a collection, whatever its problems; checked on construction."""

    search_space: str = "EXHAUSTIVE"
    """Candidates to time: `EXHAUSTIVE`, or `DEFAULT` for those of Inductor's default list."""
    method: str = "sweep"
    """`sweep` compiles kernels once and in bulk, `feedback` goes through Inductor's autotuning."""
    chunk_size: int | None = None
    """Problems whose kernels are compiled together."""
    processes: int = 0
    """Compiling processes; 0 for all cores but two."""
    workers: int = 0
    """Timing processes; 0 for one per GPU. A CPU has one."""
    threads: tuple[int, ...] = ()
    """Thread counts to time a CPU with, each problem once per count; torch's own by default."""
    noise: float | None = None
    """Time the fastest of each problem again until the best time's error, half the width of its 95%
    interval, is at most this share of it."""
    libraries_only: bool = False
    """On a CPU, time library calls only, so that nothing has to be compiled."""
    ray: str | None = None
    """Address of a Ray cluster to time on: `auto` or `host:6379`."""
    overwrite: bool = False
    """Replace an output that exists."""
    seed: int = 0
    device: str | None = None
    """torch device, such as `cuda:1`; the default is every GPU."""
    format: str | None = None
    """`parquet`, `msgpack` or `json`, where the output is a directory."""

    def __post_init__(self) -> None:
        validation.one_of("collect", "search-space", self.search_space, SEARCH_SPACES)
        validation.one_of("collect", "method", self.method, METHODS)
        validation.whole_number("collect", "processes", self.processes, low=0)
        validation.whole_number("collect", "workers", self.workers, low=0)
        self._check_cpu()
        if self.noise is not None and not 0 < self.noise <= 1:
            validation.refuse("collect", "noise", self.noise, "a share above 0, at most 1")
        if self.chunk_size is not None:
            validation.whole_number("collect", "chunk-size", self.chunk_size, low=1)

    def _check_cpu(self) -> None:
        for count in self.threads:
            validation.whole_number("collect", "threads", count, low=1)
        if self.threads and not is_cpu(self.device):
            raise InvalidValueError(
                f"--threads: got {self.threads[0]} for {self.device or 'a GPU'}; expected none, "
                "since threads are those of a CPU; leave it out or give --device cpu"
            )
        if self.workers > 1 and is_cpu(self.device):
            raise InvalidValueError(
                f"--workers: got {self.workers}; expected one on a CPU: processes that share its "
                "cores would disturb each other's timings"
            )


@dataclass(frozen=True, eq=False)
class CollectionResult:
    """A finished collection: its file and timings, and what could not be timed."""

    path: Path
    dataset: Dataset
    problems: tuple[MMShape, ...]
    wrong: int = 0
    """Timings left out because their kernels gave a wrong result."""
    left_out: tuple[MMShape, ...] = ()
    """Problems left out because every process that timed them died."""
    notes: tuple[str, ...] = ()
    reused: bool = False
    """The output had been finished before with the same settings; nothing was timed."""


def collect(
    output: str | os.PathLike[str],
    problems: ShapeSampling | ProblemList,
    options: CollectOptions | None = None,
    *,
    progress: ProgressCallback = log_progress,
) -> CollectionResult:
    """Time every candidate on the problems and write one dataset.

    A run that was killed or interrupted goes on where it stopped when it is called again with the
    same arguments: finished problems are kept beside the output until all are done. An output that
    was finished with the same arguments is used as it is.
    """
    chosen = problems if isinstance(problems, ShapeSampling) else select_problems(problems)
    from torch_diode.toolkit.collecting.run import CollectionRun

    with CollectionRun(output, options or CollectOptions(), progress) as run:
        if isinstance(chosen, ShapeSampling):
            sampling = chosen.with_dtypes(run.hardware)
            drawn = sampling.problems(run.hardware, run.options.seed)
            return run.collect("collect", drawn, sampling.settings())
        return run.collect("collect-shapeset", chosen, {})


def select_problems(
    problems: ProblemList, operations: Sequence[str] = (), dtypes: Sequence[str] = ()
) -> tuple[MMShape, ...]:
    """The distinct problems of these operations and dtypes, all where none is given."""
    for op in operations:
        validation.one_of("collect", "operations", op, OPS)
    for dtype in dtypes:
        validation.one_of("collect", "dtypes", dtype, TRITON_DTYPES)
    source = "problems"
    if isinstance(problems, str | os.PathLike):
        source, problems = os.fspath(problems), read_shapes(problems)
    if isinstance(problems, ShapeSet | OperationShapeSet):
        problems = problems.problems
    for problem in problems:
        validation.instance("collect", "problems", problem, MMShape)
    selected = tuple(
        p
        for p in dict.fromkeys(problems)
        if (p.op in operations or not operations) and (p.dtype in dtypes or not dtypes)
    )
    if not selected:
        kinds = sorted({f"{p.op} {p.dtype}" for p in problems})
        raise EmptySelectionError(
            f"{source}: got no problem of these operations and dtypes; it has "
            f"{', '.join(kinds) or 'none'}"
        )
    return selected
