"""A network's layers in numpy, with linear maps multiplied out beforehand.

Features of candidates are rows, and row 0 is all ones, so that a bias is one more weight. A
problem's own network (its scales, shifts and output) is computed first, from the problem alone;
then each layer is one product over all candidates, or a few. The heads of the vendor library and
the uncertainty take one row or a few per decision.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from torch_diode.model import networks
from torch_diode.model.features.problem_arrays import Floats

Arrays = Mapping[str, Floats]

PREFILTERED = 192
"""Candidates that go through all layers. On the 530 validation problems they always included the
first five of the whole ranking. Without the prefilter, ranking takes 1.7 times as long for 1,000
candidates and 3 times for the 2,100 of a large problem."""
_SMALL_PRODUCT = 1_000_000
"""Multiplications up to which OpenBLAS multiplies matrices without copying them first, which for
these sizes takes a third longer."""
_SPREAD_FLOOR, _SPREAD_SHIFT = np.float32(networks.SPREAD_FLOOR), np.float32(networks.SPREAD_SHIFT)
_MIN, _MAX = np.float32(networks.MIN_LOG_SIGMA), np.float32(networks.MAX_LOG_SIGMA)


class StandardisedLayer:
    """Linear layer with its standardisation folded in: clip the raw features, multiply, add."""

    def __init__(self, arrays: Arrays, norm: str, weight: Floats, bias: Floats | float = 0) -> None:
        mean, scale = arrays[f"{norm}.mean"], arrays[f"{norm}.scale"]
        self.low, self.high = self.limits(arrays, norm)
        self.weight = np.ascontiguousarray(weight * scale)
        self.bias = np.asarray(bias - self.weight @ mean, np.float32)

    def __call__(self, features: Floats) -> Floats:
        """Apply the layer to one problem's raw features."""
        return self.of_clipped(self.clip(features))

    def clip(self, features: Floats) -> Floats:
        """Bound raw features."""
        clipped = np.maximum(features, self.low)
        return np.minimum(clipped, self.high, out=clipped)

    def of_clipped(self, clipped: Floats) -> Floats:
        """Apply the layer to features within the bounds."""
        product: Floats = np.matmul(self.weight, clipped)
        product += self.bias
        return product

    @staticmethod
    def limits(arrays: Arrays, norm: str) -> tuple[Floats, Floats]:
        """Standardisation's clipping as bounds on the raw features."""
        mean, scale = arrays[f"{norm}.mean"], arrays[f"{norm}.scale"]
        reach = np.where(scale > 0, networks.CLIP_DEVIATIONS / np.where(scale > 0, scale, 1), 0)
        return np.asarray(mean - reach, np.float32), np.asarray(mean + reach, np.float32)


class CandidateLayers(Protocol):
    """Predicts log(time / roofline) from a problem's features and clipped features of candidates.

    The rows below the features are workspace for the hidden units.
    """

    rows: int
    """Rows of workspace."""

    def __call__(self, problem: Floats, rows: Floats) -> Floats:
        """Predict one value per column."""
        ...


class BaseLayers:
    """A `base` network: the problem's part of the first layer is a bias."""

    def __init__(self, arrays: Arrays) -> None:
        a = arrays
        self._problem = StandardisedLayer(
            a, "problem_norm", a["problem_in.weight"], a["problem_in.bias"]
        )
        enter = StandardisedLayer(a, "config_norm", a["config_in.weight"])
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
        """Predict one value per column."""
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

    A residual block adds a product of its inner units to its input, so the input of block n is
    linear in the first units and in the inner units of all blocks before it: its first layer is
    multiplied out to apply to those, and the sum is never formed. So is the output.

    Of many candidates, only those that the prefilter puts first go through the residual blocks.
    """

    def __init__(self, arrays: Arrays) -> None:
        a = arrays
        self._first = StandardisedLayer(
            a, "problem_norm", a["encoder.0.weight"], a["encoder.0.bias"]
        )
        self._second = a["encoder.1.weight"], a["encoder.1.bias"]
        enter = StandardisedLayer(a, "config_norm", a["config_in.weight"])
        units = self._units = len(enter.weight)
        layers = [_with_bias(enter.bias, enter.weight)]
        passed = np.zeros(units, np.float32)
        outward = [np.eye(units, dtype=np.float32)]
        count = sum(name.startswith("second.") for name in a) // 2
        for number in range(count):
            inward = a[f"first.{number}.weight"]
            layers.append(_with_bias(inward @ passed, inward @ np.hstack(outward)))
            outward.append(a[f"second.{number}.weight"])
            passed = passed + a[f"second.{number}.bias"]
        self._outward = np.ascontiguousarray(_with_bias(passed, np.hstack(outward)).T)
        self._layers = [np.ascontiguousarray(layer.T) for layer in layers]
        self._width = len(self._layers[0])
        self._film = _film_layer(a, units, len(layers))
        self._at_once = max(_SMALL_PRODUCT // (self._width * units), PREFILTERED)
        # numpy compares two arrays in half the time it takes for an array and a number.
        self._zeros = np.zeros((self._at_once, units), np.float32)
        self.rows = units

    def __call__(self, problem: Floats, rows: Floats) -> Floats:
        """Predict one value per column."""
        units, width, count = self._units, self._width, rows.shape[1]
        weights, output, prefilter = self._problem_weights(problem)
        features = rows[:width]
        first = rows[width : width + units].reshape(count, units)
        for start in range(0, count, self._at_once):
            end = min(start + self._at_once, count)
            part = first[start:end]
            np.matmul(features[:, start:end].T, weights[0], out=part)
            np.maximum(part, self._zeros[: end - start], out=part)
        if count <= PREFILTERED:
            return self._blocks(weights[1:], output, first)
        values = first @ prefilter[:-1]
        best = np.argpartition(values, PREFILTERED)
        best, next_best = best[:PREFILTERED], values[best[PREFILTERED]]
        predicted = self._blocks(weights[1:], output, first[best])
        # No candidate outside comes before the better half of those inside.
        median = np.partition(predicted, PREFILTERED // 2)[PREFILTERED // 2]
        values += max(median - next_best, prefilter[-1])
        values[best] = predicted
        return values

    def _blocks(self, weights: list[Floats], output: Floats, first: Floats) -> Floats:
        """Apply the residual blocks and the output."""
        entered = [first]
        for weight in weights:
            x = _products(entered, weight)
            np.maximum(x, self._zeros[: len(x)], out=x)
            entered.append(x)
        outward = self._outward @ output[:-1]
        outward[0] += output[-1]
        return _products(entered, outward)

    def _problem_weights(self, problem: Floats) -> tuple[list[Floats], Floats, Floats]:
        """Compute the problem's weights of every layer, of the output and of the prefilter."""
        code = np.maximum(self._first(problem), 0)
        weight, bias = self._second
        code = np.maximum(weight @ code + bias, 0)
        weight, bias = self._film
        film = weight @ code
        film += bias
        end = self._units + 1
        scales, shifts = film[: -2 * end].reshape(2, len(self._layers), -1)
        weights = [layer * scale for layer, scale in zip(self._layers, scales, strict=True)]
        for weight, shift in zip(weights, shifts, strict=True):
            weight[0] += shift
        return weights, film[-2 * end : -end], film[-end:]


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


def candidate_layers(kind: str, arrays: Arrays) -> CandidateLayers:
    """Build the layers of a network of this kind."""
    return DeepLayers(arrays) if kind == "deep" else BaseLayers(arrays)


def _film_layer(a: Arrays, units: int, layers: int) -> tuple[Floats, Floats]:
    """Weights and bias of the layer that gives a problem's scales of all layers, their shifts, and
    the weights of the output and of the prefilter."""
    names = [f"film_layers.{number}" for number in range(layers)]
    weights, biases = ([a[f"{name}.{what}"] for name in names] for what in ("weight", "bias"))
    scales, shifts = slice(units), slice(units, None)
    ends = ("problem_out", "prefilter_out")
    return (
        np.concatenate(
            [
                *(weight[scales] for weight in weights),
                *(weight[shifts] for weight in weights),
                *(a[f"{name}.weight"] for name in ends),
            ]
        ),
        np.concatenate(
            [
                *(1 + bias[scales] for bias in biases),
                *(bias[shifts] for bias in biases),
                a["problem_out.bias"] + np.append(a["out.weight"][0], a["out.bias"]),
                a["prefilter_out.bias"],
            ],
            dtype=np.float32,
        ),
    )


def _products(parts: list[Floats], weight: Floats) -> Floats:
    """Multiply all parts, side by side after a column of ones, by the weights: one product each,
    see `_SMALL_PRODUCT`."""
    end = 1 + parts[0].shape[1]
    total = parts[0] @ weight[1:end]
    for x in parts[1:]:
        start, end = end, end + x.shape[1]
        total += x @ weight[start:end]
    total += weight[0]
    return total


def _with_bias(bias: Floats, weight: Floats) -> Floats:
    """Prepend the bias as the weight of a row of ones."""
    return np.concatenate([bias[:, None], weight], axis=1, dtype=np.float32)
