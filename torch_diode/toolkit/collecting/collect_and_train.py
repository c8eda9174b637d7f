"""Collecting and training in one: time kernels, train a model, validate it on other problems."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch_diode.collection.sampling_options import ShapeSampling
from torch_diode.collection.store.output import check_writable, output_file
from torch_diode.files.atomic import refuse_existing
from torch_diode.files.file_errors import existing
from torch_diode.model.checkpoint import load_weights
from torch_diode.toolkit.collecting.collect import CollectionResult, CollectOptions, collect
from torch_diode.toolkit.collecting.create_validation import create_validation
from torch_diode.toolkit.progress import Progress, ProgressCallback, log_progress
from torch_diode.toolkit.training.options import TrainOptions
from torch_diode.toolkit.training.train import TrainingResult, check_training, train
from torch_diode.toolkit.validate import Validation, validate
from torch_diode.types.errors import FileFaultError

StepResult = CollectionResult | TrainingResult | Validation


@dataclass(frozen=True, eq=False)
class CollectAndTrainResult:
    """The result of each step; None where it was skipped."""

    collection: CollectionResult | None = None
    training: TrainingResult | None = None
    validation_set: CollectionResult | None = None
    validation: Validation | None = None


def collect_and_train(
    output: str | os.PathLike[str],
    model: str | os.PathLike[str],
    sampling: ShapeSampling,
    options: CollectOptions | None = None,
    training: TrainOptions | None = None,
    *,
    validation: str | os.PathLike[str] | None = None,
    validation_shapes: int = 25,
    skip_collection: bool = False,
    skip_training: bool = False,
    skip_validation: bool = False,
    on_step: Callable[[StepResult], None] | None = None,
    progress: ProgressCallback = log_progress,
) -> CollectAndTrainResult:
    """Collect timings, train a model on them, collect a validation set and validate the model.

    Faults of a later step are raised before the first step starts. Called again after a kill, it
    uses what was collected with the same options. `validation` is the file of the validation set,
    beside the output by default. `on_step` is called with the result of each step when it ends. A
    model that `must_beat_aten` kept from being written is not validated.
    """
    output = Path(output)
    pipeline = _Pipeline(
        output,
        Path(model),
        sampling,
        options or CollectOptions(),
        training or TrainOptions(),
        Path(validation or output.with_name(f"{output.stem}_validation{output.suffix}")),
        replace(sampling, num_shapes=validation_shapes),
        skip_collection,
        skip_training,
        skip_validation,
        progress,
    )
    pipeline.check()
    results: dict[str, Any] = {}
    for name, result in pipeline.steps():
        results[name] = result
        if on_step is not None:
            on_step(result)
    return CollectAndTrainResult(**results)


@dataclass(frozen=True)
class _Pipeline:
    output: Path
    model: Path
    sampling: ShapeSampling
    options: CollectOptions
    training: TrainOptions
    validation: Path
    validation_sampling: ShapeSampling
    skip_collection: bool
    skip_training: bool
    skip_validation: bool
    progress: ProgressCallback

    def steps(self) -> Iterator[tuple[str, StepResult]]:
        """Run the steps; the name and the result of each."""
        if not self.skip_collection:
            self._say(f"1 of 4: collecting {self.output}")
            collected = collect(self.output, self.sampling, self.options, progress=self.progress)
            yield "collection", collected
        if not self.skip_training:
            self._say(f"2 of 4: training {self.model}")
            trained = train(
                self.output,
                self.model,
                self.training,
                seed=self.options.seed,
                device=self.options.device,
                overwrite=self.options.overwrite,
                progress=self.progress,
            )
            yield "training", trained
            if not trained.is_written:
                return
        if self.skip_validation:
            return
        if self._collects_validation:
            self._say(f"3 of 4: collecting {self.validation}")
            path, sampling, exclude = self.validation, self.validation_sampling, [self.output]
            collected = create_validation(
                path, sampling, self.options, exclude=exclude, progress=self.progress
            )
            yield "validation_set", collected
        else:
            self._say(f"3 of 4: {self.validation} is there")
        self._say(f"4 of 4: validating {self.model} on {self.validation}")
        yield "validation", validate(self.model, self.validation, progress=self.progress)

    def _say(self, text: str) -> None:
        self.progress(Progress(message=text))

    @property
    def _collects_validation(self) -> bool:
        return not self.skip_validation and not (self.skip_collection and self.validation.exists())

    def check(self) -> None:
        """Raise what a later step would raise, before anything is collected."""
        collects_validation = self._collects_validation
        if self.skip_collection and (collects_validation or not self.skip_training):
            existing(self.output)
        if self.skip_training:
            existing(self.model)
            if not self.skip_validation:
                load_weights(self.model)
        else:
            self._check_training()
            self._check_card()
        if collects_validation:
            self._check_validation_set()

    def _check_training(self) -> None:
        remedy = (
            "choose another name, or give --overwrite to train it again or --skip-training to "
            "validate it"
        )
        refuse_existing(self.model, self.options.overwrite, remedy)
        check_writable(self.model, self.options.overwrite, "--model")
        check_training(self.model, self.training, self.options.device, self.options.overwrite)

    def _check_card(self) -> None:
        """Refuse a model whose card would replace a dataset."""
        cards = {self.model.with_suffix(ending).absolute() for ending in (".json", ".md")}
        for output in (self.output, self.validation):
            file = output_file(output, self.options.format)[0]
            if file.absolute() in cards:
                raise FileFaultError(
                    f"{file}: got the name of the model's card; choose another name for it or "
                    "--model"
                )

    def _check_validation_set(self) -> None:
        """Refuse a validation set that cannot be written and, where it is all that is collected, a
        device that cannot be timed on. One that exists is checked when it would be collected."""
        file = output_file(self.validation, self.options.format)[0]
        dataset = self.output
        if not self.skip_collection:
            dataset = output_file(self.output, self.options.format)[0]
        if file.absolute() == dataset.absolute():
            raise FileFaultError(
                f"{file}: got the same file to train on and to validate on; choose another "
                "--validation"
            )
        # One that exists can be this command's own only if the timings exist too.
        check_writable(file, self.options.overwrite or dataset.exists(), "--validation")
        if self.skip_collection and self.options.ray is None:
            from torch_diode.toolkit.collecting.run import CollectionRun

            with CollectionRun(self.validation, self.options, self.progress):
                pass
