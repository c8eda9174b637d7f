"""The vendor library's heads and the uncertainty in numpy: one row or a few per decision."""

from __future__ import annotations

import numpy as np

from torch_diode.model import networks
from torch_diode.model.features.problem_arrays import Floats
from torch_diode.model.serving.layers import Arrays, StandardisedLayer

_SPREAD_FLOOR, _SPREAD_SHIFT = np.float32(networks.SPREAD_FLOOR), np.float32(networks.SPREAD_SHIFT)
_MIN, _MAX = np.float32(networks.MIN_LOG_SIGMA), np.float32(networks.MAX_LOG_SIGMA)


class VendorLayers:
    """Trained `VendorHead`; `name` is its attribute in the network."""

    def __init__(self, arrays: Arrays, name: str) -> None:
        a = arrays
        self._count, width, self._hidden = a[f"{name}.weights.0"].shape
        units = self._count * self._hidden
        first = np.moveaxis(a[f"{name}.weights.0"], 1, 2).reshape(units, width)
        enter = StandardisedLayer(a, f"{name}.norm", first, a[f"{name}.biases.0"].reshape(-1))
        self._low, self._high, self._bias = enter.low, enter.high, enter.bias
        self._weight = np.ascontiguousarray(enter.weight.T)
        count = sum(key.startswith(f"{name}.weights.") for key in a)
        inner = [(a[f"{name}.weights.{i}"], a[f"{name}.biases.{i}"]) for i in range(1, count)]
        self._inner, self._last = inner[:-1], inner[-1]
        self._shift = float(a[f"{name}.shift"][0])
        self.trained = bool(a[f"{name}.trained"][0])

    def __call__(self, problem: Floats, calls: Floats) -> tuple[Floats, Floats]:
        """Predict log(time / roofline) of each call of one problem, and the members' spread."""
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
        # Written out: numpy's own mean and std take longer than a layer.
        count = np.float32(self._count)
        mean = np.add.reduce(members) / count
        members -= mean
        members *= members
        return mean + self._shift, np.sqrt(np.add.reduce(members) / count)


class UncertaintyLayers:
    """Trained `Uncertainty`."""

    def __init__(self, arrays: Arrays) -> None:
        weight, bias = arrays["uncertainty.first.weight"], arrays["uncertainty.first.bias"]
        self._first = StandardisedLayer(arrays, "problem_norm", weight[:, :-1], bias)
        self._spread = weight[:, -1]
        self._second = arrays["uncertainty.second.weight"], arrays["uncertainty.second.bias"]

    def __call__(self, problem: Floats, spread: np.float32) -> Floats:
        """Predict the deviation of log times of configs, of ATen and of splits of K, from one
        problem's features and the spread of ATen's members."""
        spread_input = np.log(spread + _SPREAD_FLOOR) + _SPREAD_SHIFT
        hidden = np.tanh(self._first(problem) + self._spread * spread_input)
        weight, bias = self._second
        log_sigma = weight @ hidden + bias
        return np.asarray(np.exp(np.minimum(np.maximum(log_sigma, _MIN), _MAX)))
