"""A network's layers in numpy, with all that is linear multiplied out beforehand.

Candidates lie side by side: a row is a feature or a hidden unit, and row 0 is all ones, so that a
bias is one more column of the weights. A problem's own network (its scales, shifts and output) is
worked out first, from the problem alone; then each layer is one product over all candidates.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from torch_diode.model.problem_arrays import Floats

Arrays = Mapping[str, Floats]

_CLIP = 6.0
_LOOKED_AT = 192
"""Candidates that go through all layers. On the 506 validation problems the first of the whole
ranking was always among them, and the first five on all but five."""


class Folded:
    """A layer that does its own standardisation: clip the raw features, multiply, add."""

    def __init__(self, arrays: Arrays, norm: str, weight: Floats, bias: Floats | float = 0) -> None:
        mean, scale = arrays[f"{norm}.mean"], arrays[f"{norm}.scale"]
        self.low, self.high = self.limits(arrays, norm)
        self.weight = np.ascontiguousarray(weight * scale)
        self.bias = np.asarray(bias - self.weight @ mean, np.float32)

    def __call__(self, features: Floats) -> Floats:
        """One problem's raw features through it."""
        clipped = np.minimum(np.maximum(features, self.low), self.high)
        return np.asarray(self.weight @ clipped + self.bias)

    @staticmethod
    def limits(arrays: Arrays, norm: str) -> tuple[Floats, Floats]:
        """Standardisation's clipping as bounds on the raw features."""
        mean, scale = arrays[f"{norm}.mean"], arrays[f"{norm}.scale"]
        reach = np.where(scale > 0, _CLIP / np.where(scale > 0, scale, 1), 0)
        return np.asarray(mean - reach, np.float32), np.asarray(mean + reach, np.float32)


class CandidateLayers(Protocol):
    """From a problem's features, and clipped features of its candidates, to log(time / roofline).

    The rows below the features are for the hidden units.
    """

    rows: int
    """How many rows of hidden units are needed."""

    def __call__(self, problem: Floats, rows: Floats) -> Floats:
        """One value a column."""
        ...


class BaseLayers:
    """A `base` network: the problem's share of the first layer is a bias."""

    def __init__(self, arrays: Arrays) -> None:
        a = arrays
        self._problem = Folded(a, "problem_norm", a["problem_in.weight"], a["problem_in.bias"])
        enter = Folded(a, "config_norm", a["config_in.weight"])
        self._enter = _with_bias(enter.bias, enter.weight)
        count = sum(name.startswith("hidden.") for name in a) // 2
        self._hidden = [
            (a[f"hidden.{number}.weight"], a[f"hidden.{number}.bias"][:, None])
            for number in range(count)
        ]
        self._out, self._out_bias = a["out.weight"][0], a["out.bias"][0]
        self._units, self._width = self._enter.shape[0], self._enter.shape[1]
        self.rows = 2 * self._units

    def __call__(self, problem: Floats, rows: Floats) -> Floats:
        """One value a column."""
        enter = self._enter.copy()
        enter[:, 0] += self._problem(problem)
        start, middle = self._width, self._width + self._units
        x, other = rows[start:middle], rows[middle:]
        np.matmul(enter, rows[:start], out=x)
        np.maximum(x, 0, out=x)
        for weight, bias in self._hidden:
            np.matmul(weight, x, out=other)
            other += bias
            np.maximum(other, 0, out=other)
            x, other = other, x
        return np.asarray(self._out @ x + self._out_bias)


class DeepLayers:
    """A `deep` network.

    A residual block adds a product of its inner units to what came before, so what enters block n
    is linear in the first units and the inner units of all blocks before: its first layer is
    multiplied out to apply to those, and the sum is never formed. The output likewise.

    Of many candidates, only those that look best after the first layer go through the others: a
    glance is nearly always enough to see that a candidate is none of the first twenty.
    """

    def __init__(self, arrays: Arrays) -> None:
        a = arrays
        self._first = Folded(a, "problem_norm", a["encoder.0.weight"], a["encoder.0.bias"])
        self._second = a["encoder.1.weight"], a["encoder.1.bias"]
        count = sum(name.startswith("second.") for name in a) // 2
        setters = [f"setters.{number}" for number in range(count + 1)]
        names = [*setters, "problem_out", "glance_out"]
        self._settings = (
            np.concatenate([a[f"{name}.weight"] for name in names]),
            np.concatenate([a[f"{name}.bias"] for name in names]),
        )
        enter = Folded(a, "config_norm", a["config_in.weight"])
        self._enter = _with_bias(enter.bias, enter.weight)
        units = self._units = len(enter.weight)
        passed = np.zeros(units, np.float32)
        self._blocks = []
        outward = [np.eye(units, dtype=np.float32)]
        for number in range(count):
            inward = a[f"first.{number}.weight"]
            self._blocks.append(_with_bias(inward @ passed, inward @ np.hstack(outward)))
            outward.append(a[f"second.{number}.weight"])
            passed = passed + a[f"second.{number}.bias"]
        self._out = a["out.weight"][0], a["out.bias"][0]
        self._outward = np.ascontiguousarray(_with_bias(passed, np.hstack(outward)).T)
        self.rows = 1 + units * (count + 1)

    def __call__(self, problem: Floats, rows: Floats) -> Floats:
        """One value a column."""
        units, width = self._units, self._enter.shape[1]
        settings = self._set(problem)
        scales, ends = settings[: -2 * (units + 1)], settings[-2 * (units + 1) :].reshape(2, -1)
        layers = (self._enter, *self._blocks)
        weights = [
            self._scaled(layer, *scales[2 * number * units :][: 2 * units].reshape(2, -1))
            for number, layer in enumerate(layers)
        ]
        hidden = rows[width:]
        hidden[0] = 1
        first = hidden[1 : 1 + units]
        np.matmul(weights[0], rows[:width], out=first)
        np.maximum(first, 0, out=first)
        if rows.shape[1] <= _LOOKED_AT:
            return self._through(weights[1:], ends[0], hidden)
        glance = ends[1, :-1] @ first
        glance += ends[1, -1]
        best = np.argpartition(glance, _LOOKED_AT)
        best, next_best = best[:_LOOKED_AT], glance[best[_LOOKED_AT]]
        looked = np.empty((len(hidden), _LOOKED_AT), np.float32)
        np.take(hidden[: 1 + units], best, axis=1, out=looked[: 1 + units], mode="clip")
        values = self._through(weights[1:], ends[0], looked)
        # None that was only glanced at comes before the better half of those looked at.
        half = np.partition(values, _LOOKED_AT // 2)[_LOOKED_AT // 2]
        glance += max(half - next_best, 0)
        glance[best] = values
        return glance

    def _through(self, weights: list[Floats], ends: Floats, hidden: Floats) -> Floats:
        """The layers after the first, and the output."""
        units = self._units
        for number, weight in enumerate(weights, 1):
            end = 1 + number * units
            x = hidden[end : end + units]
            np.matmul(weight, hidden[:end], out=x)
            np.maximum(x, 0, out=x)
        weight, bias = self._out
        outward = self._outward @ (weight + ends[:-1])
        outward[0] += bias + ends[-1]
        return np.asarray(outward @ hidden)

    @staticmethod
    def _scaled(layer: Floats, scale: Floats, shift: Floats) -> Floats:
        """A layer as a problem sets it."""
        weight = layer * (1 + scale)[:, None]
        weight[:, 0] += shift
        return weight

    def _set(self, problem: Floats) -> Floats:
        """What the problem sets: scales and shifts of every layer, the output, the glance's."""
        code = np.maximum(self._first(problem), 0)
        weight, bias = self._second
        code = np.maximum(weight @ code + bias, 0)
        weight, bias = self._settings
        return np.asarray(weight @ code + bias)


def candidate_layers(kind: str, arrays: Arrays) -> CandidateLayers:
    """The layers of a network of this kind."""
    return DeepLayers(arrays) if kind == "deep" else BaseLayers(arrays)


def _with_bias(bias: Floats, weight: Floats) -> Floats:
    """Weights for rows of which the first is all ones."""
    return np.concatenate([bias[:, None], weight], axis=1, dtype=np.float32)
