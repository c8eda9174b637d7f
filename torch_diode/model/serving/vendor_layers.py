"""The heads for the vendor library, and the doubt, in numpy: a row or a few for each decision."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from torch_diode.model.features.problem_arrays import Floats
from torch_diode.model.networks import limits
from torch_diode.model.serving.layers import Folded

Arrays = Mapping[str, Floats]

_APART_FLOOR, _APART_SHIFT = np.float32(limits.APART_FLOOR), np.float32(limits.APART_SHIFT)
_LEAST_DOUBT, _MOST_DOUBT = np.float32(limits.LEAST_DOUBT), np.float32(limits.MOST_DOUBT)


class VendorLayers:
    """A trained `VendorHead`; `name` is its place in the network."""

    def __init__(self, arrays: Arrays, name: str) -> None:
        a = arrays
        self._count, width, self._hidden = a[f"{name}.weights.0"].shape
        units = self._count * self._hidden
        first = np.moveaxis(a[f"{name}.weights.0"], 1, 2).reshape(units, width)
        enter = Folded(a, f"{name}.norm", first, a[f"{name}.biases.0"].reshape(-1))
        self._low, self._high, self._bias = enter.low, enter.high, enter.bias
        self._weight = np.ascontiguousarray(enter.weight.T)
        count = sum(key.startswith(f"{name}.weights.") for key in a)
        inner = [(a[f"{name}.weights.{i}"], a[f"{name}.biases.{i}"]) for i in range(1, count)]
        self._inner, self._last = inner[:-1], inner[-1]
        self._shift = float(a[f"{name}.shift"][0])
        self.trained = bool(a[f"{name}.trained"][0])

    def __call__(self, problem: Floats, calls: Floats) -> tuple[Floats, Floats]:
        """log(time / roofline) of each call of one problem, and how far the members are apart."""
        features = np.empty((len(calls), len(self._low)), np.float32)
        features[:, : len(problem)] = problem
        features[:, len(problem) :] = calls
        np.maximum(features, self._low, out=features)
        np.minimum(features, self._high, out=features)
        x = features @ self._weight
        x += self._bias
        np.maximum(x, 0, out=x)
        x = x.reshape(len(calls), self._count, self._hidden).swapaxes(0, 1)
        for weight, bias in self._inner:
            x = x @ weight
            x += bias
            np.maximum(x, 0, out=x)
        weight, bias = self._last
        members = (x @ weight + bias)[:, :, 0]
        # By hand, like the rest of this: numpy's own mean and deviation take longer than a layer.
        count = np.float32(self._count)
        mean = np.add.reduce(members) / count
        members -= mean
        members *= members
        return mean + self._shift, np.sqrt(np.add.reduce(members) / count)


class UncertaintyLayers:
    """A trained `Doubt`."""

    def __init__(self, arrays: Arrays) -> None:
        weight, bias = arrays["doubt.first.weight"], arrays["doubt.first.bias"]
        self._first = Folded(arrays, "problem_norm", weight[:, :-1], bias)
        self._apart = weight[:, -1]
        self._second = arrays["doubt.second.weight"], arrays["doubt.second.bias"]

    def __call__(self, problem: Floats, apart: np.float32) -> Floats:
        """The error to expect of the log times of configs, of ATen and of splits of K, from the
        features of one problem and how far ATen's members are apart on it."""
        told = np.log(apart + _APART_FLOOR) + _APART_SHIFT
        hidden = np.tanh(self._first(problem) + self._apart * told)
        weight, bias = self._second
        log_sigma = weight @ hidden + bias
        return np.asarray(np.exp(np.minimum(np.maximum(log_sigma, _LEAST_DOUBT), _MOST_DOUBT)))
