"""A loaded model as heuristics use it: predictions, limits, caveats and a fingerprint."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from torch_diode.candidates import candidate_space
from torch_diode.candidates.gpu.compiled_resources import config_keys
from torch_diode.hardware import find
from torch_diode.hardware.versions import same_release
from torch_diode.model.checkpoint import load_weights
from torch_diode.model.features.problem_arrays import Floats
from torch_diode.model.metadata import CONFIG_COLUMNS, SWEEP, WORSE_THAN_ATEN, ModelMetadata
from torch_diode.model.networks import LIBRARY, file_names
from torch_diode.model.serving.inference import NumpyNetwork
from torch_diode.model.serving.library_inference import LibraryNetwork
from torch_diode.types.candidate import ATEN, Candidate, pack
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.errors import EmptySelectionError, HardwareMismatchError, InvalidValueError
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape
from torch_diode.types.timing import Prediction

_MAX_EXTRAPOLATION = 4.0
"""Largest size of a problem, as a multiple of the largest in training."""


class ModelWrapper:
    """A model by its file, or by its metadata and arrays.

    Implements `heuristics.model.TimingModel`: `ModelHeuristic(wrapper)` is a heuristic.
    """

    def __init__(
        self,
        model: str | os.PathLike[str] | ModelMetadata,
        arrays: Mapping[str, Floats] | None = None,
    ) -> None:
        if not isinstance(model, ModelMetadata):
            model, arrays = load_weights(_path(model))
        metadata, arrays = model, arrays or {}
        self.metadata = metadata
        self._network: NumpyNetwork | LibraryNetwork
        if metadata.kind == LIBRARY:
            self._network = LibraryNetwork(tuple(metadata.labels), arrays)
        else:
            self._network = NumpyNetwork(metadata.kind, arrays)
        self._fingerprint = _fingerprint(metadata, arrays)
        self._covers = frozenset(metadata.covers)
        worse = metadata.scores.get(WORSE_THAN_ATEN)
        self._worse_than_aten = worse if isinstance(worse, list) else []
        self._configs = {name: _keys(configs) for name, configs in metadata.configs.items()}
        self.open_sizes = SWEEP in metadata.options.get("methods", [SWEEP])
        """True if the training timings are of kernels that take their sizes as arguments."""
        self._limits = {
            name: metadata.ranges.get(name, [0.0, np.inf])[1] * _MAX_EXTRAPOLATION
            for name in ("M", "N", "K", "B", "flops")
        }

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> ModelWrapper:
        """Read, check and prepare a model file."""
        return cls(path)

    def predict(
        self,
        problem: MMShape,
        candidates: Iterable[Candidate] | None = None,
        hardware: Hardware | str | None = None,
    ) -> list[Prediction]:
        """The time of each candidate, by default of all that fit the chip, best first.

        The hardware is the model's own by default, on a CPU with as many threads as torch uses
        here. Raises where the model does not cover the problem; `torch_diode.rank` is the same with
        every kind of heuristic.
        """
        if not isinstance(hardware, Hardware):
            hardware = find(hardware or self.metadata.hardware)
        self.require(hardware)
        why = self.supports(problem, hardware)
        if why is not None:
            raise EmptySelectionError(f"predict: {why}; give a problem it covers")
        space = candidate_space(problem, hardware) if candidates is None else candidates
        given = space if isinstance(space, Candidates) else Candidates.of(space)
        times, sigma = self.predict_us(problem, given, hardware)
        source = f"model {self.metadata.hardware}"
        return [
            Prediction(given[i], float(times[i]), float(sigma[i]), source)
            for i in map(int, np.argsort(times, kind="stable"))
            if np.isfinite(times[i])
        ]

    def predict_us(
        self, problem: MMShape, candidates: Candidates, hardware: Hardware
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Predict the microseconds of every candidate, and the expected error of each."""
        return self._network.predict(problem, candidates, hardware)

    def known(self, candidates: Candidates) -> npt.NDArray[np.bool_] | None:
        """Mask of the candidates it can predict; None if that is all of any."""
        if self._configs:
            return self._trained_on(candidates)
        known = getattr(self._network, "known", None)
        return None if known is None else known(candidates)

    def _trained_on(self, candidates: Candidates) -> npt.NDArray[np.bool_]:
        """Mask of ATen and of the configs in training."""
        mask, keys = candidates.is_template(ATEN), config_keys(candidates)
        for name, trained in self._configs.items():
            mask = mask | (candidates.is_template(name) & np.isin(keys, trained))
        return mask

    def supports(self, problem: MMShape, hardware: Hardware) -> str | None:
        """None if the model covers the problem on this hardware; otherwise the reason."""
        if hardware.kind == "cpu" and (reason := self._other_cpu(hardware)):
            return reason
        if hardware.arch != self.metadata.arch:
            return (
                f"the model is of {self.metadata.arch} ({self.metadata.hardware}), "
                f"{hardware.name} is {hardware.arch or 'of no known architecture'}"
            )
        kind = f"{problem.kind}/{problem.layout}" if self.metadata.labels else problem.kind
        if kind not in self._covers or problem.out_dtype != problem.dtype:
            layout = f", layout {problem.layout}" if self.metadata.labels else ""
            return f"the model was not trained on {problem.op} in {problem.precision}{layout}"
        for name, most in self._limits.items():
            if getattr(problem, name) > most:
                return (
                    f"{name} {getattr(problem, name)} is far beyond the "
                    f"{self.metadata.ranges[name][1]:.0f} the model was trained up to"
                )
        return None

    def loses_to_aten(self, problem: MMShape) -> str:
        """The kind of problems, this one among them, in which ATen alone was better on the problems
        held out of training; empty where there is none."""
        kinds = ("all", f"op={problem.op}", f"precision={problem.precision}")
        return next((kind for kind in kinds if kind in self._worse_than_aten), "")

    def _other_cpu(self, hardware: Hardware) -> str:
        """The reason why the model is not for a CPU: another one, or another number of threads."""
        trained = self.metadata
        if hardware.name != trained.hardware:
            return f"the model is of {trained.hardware}, this is {hardware.name}"
        if hardware.threads not in trained.threads:
            counts = ", ".join(map(str, trained.threads))
            return f"the model was trained with {counts} threads, here are {hardware.threads}"
        return ""

    def why_shortlists(self, hardware: Hardware) -> str:
        """Empty on the hardware whose measurements have shown that it may decide alone; elsewhere
        the reason why it only shortlists."""
        trained = self.metadata
        if hardware.name in trained.decides_alone:
            return ""
        if hardware.name != trained.hardware:
            return f"the model is of {trained.hardware}, and not validated on {hardware.name}"
        return f"timings of {trained.hardware} have not shown that it may decide alone"

    def require(self, hardware: Hardware) -> None:
        """Raise if the model is of another chip family, whose kernels differ."""
        if hardware.arch != self.metadata.arch:
            raise HardwareMismatchError(
                f"model: got one of {self.metadata.hardware} ({self.metadata.arch}); expected "
                f"{hardware.arch or 'a known architecture'} for {hardware.name}; "
                "train one on this hardware's timings"
            )

    def notes(
        self,
        hardware: Hardware,
        torch: str,
        triton: str,
        templates: Mapping[str, str] | None = None,
    ) -> list[str]:
        """Differences between this machine and the training data, a sentence each; strict settings
        abstain if there is any. `templates` are the hashes of the templates here."""
        caveats = []
        if hardware.name != self.metadata.hardware:
            caveats.append(f"model of {self.metadata.hardware} used on {hardware.name}")
        pairs = [("torch", torch, self.metadata.torch)]
        if hardware.kind != "cpu":  # whose kernels need no triton
            pairs.append(("triton", triton, self.metadata.triton))
        for name, here, trained in pairs:
            if not same_release(here, trained):
                under = ", ".join(trained) or "of no recorded release"
                now = f"this is {here}" if here else "which is not installed here"
                caveats.append(f"model trained under {name} {under}, {now}")
        known = {text.partition("=")[0] for text in self.metadata.template_hashes}
        changed = [
            name
            for name, text in (templates or {}).items()
            if name in known and f"{name}={text}" not in self.metadata.template_hashes
        ]
        if changed:
            caveats.append(
                f"template changed since the model was trained: {', '.join(changed)}; its choices "
                "may be off, `torch-diode tune program.py` measures yours with the new one"
            )
        return caveats

    def fingerprint(self) -> str:
        """Hash of the weights and the metadata."""
        return self._fingerprint


def _path(model: object) -> str | os.PathLike[str]:
    if not isinstance(model, str | os.PathLike):
        raise InvalidValueError(
            f"ModelWrapper: got {model!r:.60}; expected a model file, or metadata and arrays"
        )
    return model


def _keys(configs: Sequence[Sequence[int]]) -> npt.NDArray[np.int64]:
    columns = np.array(configs, np.int64).reshape(-1, len(CONFIG_COLUMNS)).T
    return pack(dict(zip(CONFIG_COLUMNS, columns, strict=True)), CONFIG_COLUMNS, columns[0] * 0)


def _fingerprint(metadata: ModelMetadata, arrays: Mapping[str, Floats]) -> str:
    digest = hashlib.sha256(metadata.to_json().encode())
    for name, array in sorted(file_names(arrays).items()):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:20]
