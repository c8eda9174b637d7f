"""A loaded model as a heuristic asks it: times, the limits of what it knows, a fingerprint."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from torch_diode.hardware.versions import same_release
from torch_diode.model.features.problem_arrays import Floats
from torch_diode.model.metadata import SWEEP, ModelMetadata
from torch_diode.model.serving.inference import NumpyNetwork
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.errors import HardwareMismatchError
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape

_BEYOND = 4.0
"""How many times the greatest size met in training a problem may have."""


class ModelWrapper:
    """Fits `heuristics.model.TimingModel`: `ModelHeuristic(wrapper)` is a heuristic."""

    def __init__(self, metadata: ModelMetadata, arrays: Mapping[str, Floats]) -> None:
        self.metadata = metadata
        self._network = NumpyNetwork(metadata.kind, arrays)
        self._fingerprint = _fingerprint(metadata, arrays)
        self._covers = frozenset(metadata.covers)
        self.open_sizes = SWEEP in metadata.options.get("methods", [SWEEP])
        """Whether the times it learnt are of kernels that get their sizes as arguments."""
        self._limits = {
            name: metadata.ranges.get(name, [0.0, np.inf])[1] * _BEYOND
            for name in ("M", "N", "K", "B", "flops")
        }

    def predict_us(
        self, problem: MMShape, candidates: Candidates, hardware: Hardware
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Microseconds for every candidate, and the error to expect of each for this problem."""
        return self._network.predict(problem, candidates, hardware)

    def supports(self, problem: MMShape, hardware: Hardware) -> str | None:
        """None where the model may be asked; otherwise why not."""
        if hardware.arch != self.metadata.arch:
            return (
                f"the model is of {self.metadata.arch} ({self.metadata.hardware}), "
                f"{hardware.name} is {hardware.arch or 'of no known architecture'}"
            )
        if problem.kind not in self._covers or problem.out_dtype != problem.dtype:
            return f"the model was not trained on {problem.op} in {problem.precision}"
        for name, most in self._limits.items():
            if getattr(problem, name) > most:
                return (
                    f"{name} {getattr(problem, name)} is far beyond the "
                    f"{self.metadata.ranges[name][1]:.0f} the model was trained up to"
                )
        return None

    def require(self, hardware: Hardware) -> None:
        """Raise where the model is of another chip family: its kernels are others."""
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
        """Where this machine differs from what the model was trained on, a sentence each; a
        strict user abstains if there is any. `templates` are the hashes of those here."""
        found = []
        if hardware.name != self.metadata.hardware:
            found.append(f"model of {self.metadata.hardware} used on {hardware.name}")
        pairs = (("torch", torch, self.metadata.torch), ("triton", triton, self.metadata.triton))
        for name, here, trained in pairs:
            if not same_release(here, trained):
                found.append(f"model trained under {name} {', '.join(trained)}, this is {here}")
        met = {text.partition("=")[0] for text in self.metadata.template_hashes}
        changed = [
            name
            for name, text in (templates or {}).items()
            if name in met and f"{name}={text}" not in self.metadata.template_hashes
        ]
        if changed:
            found.append(f"template changed since the model was trained: {', '.join(changed)}")
        return found

    def fingerprint(self) -> str:
        """Changes with the weights, the features and the limits."""
        return self._fingerprint


def _fingerprint(metadata: ModelMetadata, arrays: Mapping[str, Floats]) -> str:
    found = hashlib.sha256(metadata.to_json().encode())
    for name in sorted(arrays):
        found.update(name.encode())
        found.update(np.ascontiguousarray(arrays[name]).tobytes())
    return found.hexdigest()[:20]
