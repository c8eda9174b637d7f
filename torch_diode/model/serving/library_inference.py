"""Inference of a `library` network in numpy: all candidates of a CPU's problem in one pass."""

from __future__ import annotations

from typing import NamedTuple
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
Mask = npt.NDArray[np.bool_]

# Arrays: numpy takes twice as long for an array and a number as for two arrays.
_ONE, _LEAST_INPUT = np.array(1, np.float32), np.array(-80, np.float32)
_SPREAD_FLOOR = np.array(SPREAD_FLOOR, np.float32)
_MIN_SIGMA, _MAX_SIGMA = np.array(MIN_LOG_SIGMA, np.float32), np.array(MAX_LOG_SIGMA, np.float32)
_MIN_RATIO, _MAX_RATIO = (np.array(limit, np.float32) for limit in (-MAX_LOG_RATIO, MAX_LOG_RATIO))
_COLUMNS = np.array([CPU_NAMES.index(name) for name in DOUBT_FEATURES])


class _Outputs(NamedTuple):
    """The network's outputs for some candidates."""

    rows: Rows
    """The output of each candidate; -1 where there is none."""
    known: Mask | None
    """Mask of those that have one; None if all have."""


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
        self._cache: WeakKeyDictionary[Candidates, _Outputs] = WeakKeyDictionary()

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
        self._members, self._labels = (np.array(n, np.float32) for n in (members, len(constant)))

    def known(self, candidates: Candidates) -> Mask | None:
        """Mask of the candidates that the network has an output for; None if it has for all."""
        return self._outputs(candidates).known

    def predict(
        self, problem: MMShape, candidates: Candidates, hardware: Hardware
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Predict the microseconds of every candidate, in their order, and the expected error of
        each, as a fraction; NaN for those it does not know."""
        arrays = OneProblem(problem, hardware.threads)
        features = cpu_features(arrays, hardware)[0]
        with one_thread():
            log_ratio, sigma = self._predict(features)
        rows, known = self._outputs(candidates)
        times = np.exp(log_ratio[rows].astype(np.float64))
        times *= roofline_us(arrays, hardware)
        errors = sigma[rows].astype(np.float64)
        if known is not None:
            times[~known] = errors[~known] = np.nan
        return times, errors

    def _predict(self, features: Floats) -> tuple[Floats, Floats]:
        """Predict log(time / roofline) of each label, and its deviation."""
        clipped = self._first.clip(features)
        x = self._first.of_clipped(clipped).reshape(self._shape)
        for weight, bias in self._others:
            x = np.matmul(_swish(x), weight)
            x += bias
        members = x[:, 0]
        mean = np.add.reduce(members) / self._members
        own = members - np.add.reduce(members, axis=1, keepdims=True) / self._labels
        own -= np.add.reduce(own) / self._members
        own *= own
        spread = np.log(np.sqrt(np.add.reduce(own) / self._members) + _SPREAD_FLOOR)
        sigma = self._constant + self._by_spread * spread + clipped[_COLUMNS] @ self._by_kind
        np.maximum(sigma, _MIN_SIGMA, out=sigma)
        np.minimum(sigma, _MAX_SIGMA, out=sigma)
        np.maximum(mean, _MIN_RATIO, out=mean)
        np.minimum(mean, _MAX_RATIO, out=mean)
        return mean, np.exp(sigma, out=sigma)

    def _outputs(self, candidates: Candidates) -> _Outputs:
        found = self._cache.get(candidates)
        if found is None:
            rows = np.array([self._places.get(str(c), -1) for c in candidates], np.intp)
            known = rows >= 0
            found = self._cache[candidates] = _Outputs(rows, None if known.all() else known)
        return found


def _swish(x: Floats) -> Floats:
    """`x / (1 + exp(-x))`, without overflow."""
    divisor = np.maximum(x, _LEAST_INPUT)
    np.negative(divisor, out=divisor)
    np.exp(divisor, out=divisor)
    divisor += _ONE
    return np.divide(x, divisor, out=divisor)
