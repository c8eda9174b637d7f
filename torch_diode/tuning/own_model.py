"""A model of this machine, trained on what tuning has measured and on problems drawn at random."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from torch_diode.collection.sampling_options import ShapeSampling
from torch_diode.files.datasets import read_dataset
from torch_diode.files.user_data import user_data
from torch_diode.integration.tuned_tables import TunedFolder, tuned_folders
from torch_diode.model.registry import FOLDER, SHIPPED, shipped_model
from torch_diode.toolkit.collecting.collect import CollectOptions, collect
from torch_diode.toolkit.progress import Progress, ProgressCallback
from torch_diode.toolkit.training.options import TrainOptions
from torch_diode.toolkit.training.train import train
from torch_diode.types.dataset import Dataset
from torch_diode.types.hardware import Hardware

_DRAWN, _DRAWN_QUICKLY = 200, 40
_LARGEST = {"cpu": 4096}
"""Size of the drawn problems on a CPU, which would take a second for larger ones."""


def train_own_model(
    hardware: Hardware,
    folder: TunedFolder,
    *,
    quick: bool,
    device: str | None,
    seed: int,
    progress: ProgressCallback,
) -> str:
    """Draw problems like those that are kept, time them, and train a model that decides from then
    on; a sentence on what came of it.

    On a GPU that a shipped model knows, that one is fine-tuned. On such a CPU it stays: it was
    trained on far more, and the tuned table decides before it.
    """
    shipped = shipped_model(hardware)
    if shipped is not None and shipped.hardware != hardware.name:
        shipped = None
    if shipped is not None and hardware.kind == "cpu" and shipped.fits(hardware.threads):
        return f"no model was trained: the shipped one knows {hardware.label} from more data"
    kept = read_dataset(folder.timings)
    collect(
        folder.drawn,
        _like(kept, hardware, _DRAWN_QUICKLY if quick else _DRAWN),
        CollectOptions(
            device=device or hardware.kind,
            threads=(hardware.threads,) if hardware.threads else (),
            libraries_only=quick and hardware.kind == "cpu",
            search_space="DEFAULT" if quick and hardware.kind != "cpu" else "EXHAUSTIVE",
            overwrite=False,
            seed=seed,
        ),
        progress=progress,
    )
    path = user_data() / FOLDER / "matmul" / hardware.name / "matmul.pt"
    options = TrainOptions(init_from=None if shipped is None else SHIPPED, must_beat_aten=True)
    dataset = Dataset.merge(list(_timings(folder)), "last")
    trained = train(dataset, path, options, seed=seed, overwrite=True, progress=progress)
    if not trained.is_written:
        return f"no model was kept: ATen alone is better in {', '.join(trained.worse_than_aten)}"
    progress(Progress(message=f"{path}: trained on {len(dataset.problems):,} problems"))
    return f"the model in {Path(path).parent} decides where the tuned table has no row"


def _like(kept: Dataset, hardware: Hardware, count: int) -> ShapeSampling:
    """Log-normal problems of the operations, dtypes and layouts that are kept."""
    problems = [kept.problem(row) for row in kept.problems.first.tolist()]
    return ShapeSampling(
        count,
        operations=tuple(sorted({problem.op for problem in problems})),
        dtypes=tuple(sorted({problem.dtype for problem in problems})),
        layouts=tuple(sorted({problem.layout for problem in problems})),
        log_normal=True,
        max_size=_LARGEST.get(hardware.kind),
        tf32=any(problem.tf32 for problem in problems),
    )


def _timings(folder: TunedFolder) -> Iterator[Dataset]:
    """All timings of this hardware and release: a model knows the numbers of threads it saw."""
    for other in tuned_folders():
        if (other.hardware, other.torch) == (folder.hardware, folder.torch):
            for file in (other.drawn, other.timings):
                if file.exists():
                    yield read_dataset(file)
