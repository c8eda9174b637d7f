"""Inference of a `library` network in numpy: all candidates of a CPU's problem in one pass."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from torch_diode.model.features.cpu import cpu_features
from torch_diode.model.features.names import CPU_NAMES
from torch_diode.model.features.problem_arrays import Floats, OneProblem
from torch_diode.model.features.roofline import roofline_us
from torch_diode.model.networks import (
    DOUBT_FEATURES,
    MAX_LOG_RATIO,
    MAX_LOG_SIGMA,
    MIN_LOG_SIGMA,
    SPREAD_FLOOR,
)
from torch_diode.model.serving.layers import Arrays, StandardisedLayer
from torch_diode.model.serving.one_thread import one_thread
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.errors import InvalidValueError
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape

Rows = npt.NDArray[np.intp]

_MOST_EXPONENT = np.float32(80)
_COLUMNS = np.array([CPU_NAMES.index(name) for name in DOUBT_FEATURES])


class LibraryNetwork:
    """A `library` network from its weights by name; `labels` are the candidates of its outputs."""

    @one_thread()
    def __init__(self, labels: tuple[str, ...], arrays: Arrays) -> None:
        arrays = {name: np.asarray(a, np.float32) for name, a in arrays.items()}
        try:
            self._read(arrays)
        except KeyError as fault:
            raise InvalidValueError(
                f"model weights: got none called {fault.args[0]!r}; expected those of a library "
                "network; train or fetch the model again"
            ) from None
        self._places = {label: place for place, label in enumerate(labels)}
        self._cache: WeakKeyDictionary[Candidates, Rows] = WeakKeyDictionary()

    def _read(self, arrays: Arrays) -> None:
        count = sum(name.startswith("weights.") for name in arrays)
        weights = [arrays[f"weights.{i}"] for i in range(count)]
        biases = [arrays[f"biases.{i}"] for i in range(count)]
        members, width, hidden = weights[0].shape
        if width != len(CPU_NAMES):
            raise InvalidValueError(
                f"model weights: got {width} features; expected {len(CPU_NAMES)}; train again with "
                "this release"
            )
        first = np.moveaxis(weights[0], 1, 2).reshape(members * hidden, width)
        self._first = StandardisedLayer(arrays, "problem_norm", first, biases[0].reshape(-1))
        self._others = list(zip(weights[1:], biases[1:], strict=True))
        self._shape = (members, 1, hidden)
        constant, self._by_spread, *by_kind = arrays["uncertainty"]
        mean, scale = (arrays[f"problem_norm.{name}"][_COLUMNS] for name in ("mean", "scale"))
        self._by_kind = np.stack(by_kind) * scale[:, None]
        self._constant = constant - mean @ self._by_kind
        self._limits = self._first.low[_COLUMNS], self._first.high[_COLUMNS]

    def known(self, candidates: Candidates) -> npt.NDArray[np.bool_]:
        """Mask of the candidates that the network has an output for."""
        return np.asarray(self._rows(candidates) >= 0)

    def predict(
        self, problem: MMShape, candidates: Candidates, hardware: Hardware
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Predict the microseconds of every candidate, in their order, and the expected error of
        each, as a fraction; NaN for those it does not know."""
        arrays = OneProblem(problem, hardware.threads)
        features = cpu_features(arrays, hardware)[0]
        with one_thread():
            log_ratio, sigma = self._predict(features)
        rows = self._rows(candidates)
        times = np.exp(log_ratio[rows].astype(np.float64)) * float(roofline_us(arrays, hardware))
        errors = sigma[rows].astype(np.float64)
        unknown = rows < 0
        if unknown.any():
            times[unknown] = errors[unknown] = np.nan
        return times, errors

    def _predict(self, features: Floats) -> tuple[Floats, Floats]:
        """Predict log(time / roofline) of each label, and its deviation."""
        x = self._first(features).reshape(self._shape)
        for weight, bias in self._others:
            x = x / (1 + np.exp(np.minimum(-x, _MOST_EXPONENT)))
            x = x @ weight
            x += bias
        members = x[:, 0]
        count = np.float32(len(members))
        mean = np.add.reduce(members) / count
        own = members - np.add.reduce(members, axis=1, keepdims=True) / np.float32(len(mean))
        own -= np.add.reduce(own) / count
        own *= own
        spread = np.log(np.sqrt(np.add.reduce(own) / count) + np.float32(SPREAD_FLOOR))
        kind = np.minimum(np.maximum(features[_COLUMNS], self._limits[0]), self._limits[1])
        sigma = self._constant + self._by_spread * spread + kind @ self._by_kind
        sigma = np.exp(np.minimum(np.maximum(sigma, MIN_LOG_SIGMA), MAX_LOG_SIGMA))
        return np.minimum(np.maximum(mean, -MAX_LOG_RATIO), MAX_LOG_RATIO), sigma

    def _rows(self, candidates: Candidates) -> Rows:
        """The output of each candidate; -1 where there is none."""
        rows = self._cache.get(candidates)
        if rows is None:
            rows = np.array([self._places.get(str(c), -1) for c in candidates], np.intp)
            self._cache[candidates] = rows
        return rows
