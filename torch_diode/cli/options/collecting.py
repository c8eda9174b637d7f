"""The options of the collecting commands, in words; light, since `--help` loads them.

What the words come to is in `drawing` (which shapes) and `collecting` (how they are timed).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from torch_diode.collection import sampling_options as shapes
from torch_diode.collection.sampling_options import Drawing
from torch_diode.collection.shape_sampling import LogNormal
from torch_diode.types import validation

SEARCH_SPACES = ("EXHAUSTIVE", "DEFAULT")
METHODS = ("sweep", "feedback")
SEARCH_MODES = ("max-autotune",)
_LAW = LogNormal()
_MOST_LOG = 30.0
"""Of a size's logarithm: far beyond any matrix, and within what a float holds."""

Output = Annotated[
    Path,
    typer.Option("--output", "-o", help="File to write (.parquet, .msgpack, .json) or directory."),
]
SearchSpace = Annotated[str, typer.Option(help="Candidates to time: EXHAUSTIVE or DEFAULT.")]
SearchMode = Annotated[str, typer.Option(help="What torch is compared in; max-autotune.")]
Method = Annotated[
    str,
    typer.Option(
        help="sweep: kernels compiled once, in bulk; feedback: through Inductor's autotuning, "
        "slowly. Both with the clean timer."
    ),
]
ChunkSize = Annotated[int | None, typer.Option(help="Problems that wait for kernels together.")]
Processes = Annotated[int, typer.Option(help="Compiling processes; 0 for all cores but two.")]
Workers = Annotated[
    int, typer.Option(help="Timing processes; 0 for one on each GPU, or one on the CPU.")
]
Ray = Annotated[
    str | None, typer.Option(help="Address of a Ray cluster to time on: auto, or host:6379.")
]
Overwrite = Annotated[bool, typer.Option(help="Replace the output if it exists.")]
Operations = Annotated[list[str] | None, typer.Option(help="mm, addmm, bmm, baddbmm.")]
Dtypes = Annotated[
    list[str] | None, typer.Option(help="bfloat16 (default on a GPU), float16, float32.")
]
NumShapes = Annotated[int, typer.Option(help="Problems to draw.")]
IsLogNormal = Annotated[
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
    list[str] | None, typer.Option("--layout", help="nn, nt, tn or tt; may be given again.")
]
Tf32 = Annotated[bool, typer.Option("--tf32", help="float32 products in TF32.")]


@dataclass(frozen=True)
class Shapes:
    """Which shapes to draw."""

    num_shapes: NumShapes = 100
    log_normal: IsLogNormal = False
    log_normal_m_mean: Mean = _LAW.m[0]
    log_normal_m_std: Deviation = _LAW.m[1]
    log_normal_n_mean: Mean = _LAW.n[0]
    log_normal_n_std: Deviation = _LAW.n[1]
    log_normal_k_mean: Mean = _LAW.k[0]
    log_normal_k_std: Deviation = _LAW.k[1]
    min_size: MinSize = None
    max_size: MaxSize = None
    power_of_two: PowerOfTwo = False
    no_rectangular: NoRectangular = False
    no_odd_sizes: NoOddSizes = False
    operations: Operations = None
    dtypes: Dtypes = None
    layouts: Layouts = None
    tf32: Tf32 = False

    def __post_init__(self) -> None:
        validation.whole_number("collect", "num-shapes", self.num_shapes, low=1)
        for size in "mnk":
            for what, least in (("mean", -_MOST_LOG), ("std", 0.0)):
                value = getattr(self, f"log_normal_{size}_{what}")
                if not least <= value <= _MOST_LOG:
                    name, expected = f"log-normal-{size}-{what}", f"{least:g} to {_MOST_LOG:g}"
                    validation.refuse("collect", name, value, expected)

    def drawing(self, device: str | None) -> Drawing:
        """What they come to on a device."""
        return Drawing(
            self.num_shapes,
            tuple(self.operations or shapes.OPERATIONS),
            tuple(self.dtypes or shapes.default_dtypes(device)),
            tuple(self.layouts or ("nn",)),
            self.log_normal,
            (self.log_normal_m_mean, self.log_normal_m_std),
            (self.log_normal_n_mean, self.log_normal_n_std),
            (self.log_normal_k_mean, self.log_normal_k_std),
            self.min_size,
            self.max_size,
            self.power_of_two,
            self.no_rectangular,
            self.no_odd_sizes,
            self.tf32,
        )


@dataclass(frozen=True)
class How:
    """How to collect, whatever is collected."""

    output: Output
    search_space: SearchSpace = "EXHAUSTIVE"
    search_mode: SearchMode = "max-autotune"
    method: Method = "sweep"
    chunk_size: ChunkSize = None
    processes: Processes = 0
    workers: Workers = 0
    ray: Ray = None
    overwrite: Overwrite = False

    def __post_init__(self) -> None:
        validation.one_of("collect", "search-space", self.search_space, SEARCH_SPACES)
        validation.one_of("collect", "search-mode", self.search_mode, SEARCH_MODES)
        validation.one_of("collect", "method", self.method, METHODS)
        validation.whole_number("collect", "processes", self.processes, low=0)
        validation.whole_number("collect", "workers", self.workers, low=0)
        if self.chunk_size is not None:
            validation.whole_number("collect", "chunk-size", self.chunk_size, low=1)
