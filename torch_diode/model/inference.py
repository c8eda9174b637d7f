"""A trained network in numpy: what answers in a compile.

torch's dispatcher costs more than the arithmetic of a thousand candidates, and numpy gives the
same numbers in every process. What depends on the candidates and the kind of problem is kept from
one question to the next: a compile asks about the same space again and again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from torch_diode.model.features import (
    CONFIG_NAMES,
    JOINT_NAMES,
    PROBLEM_NAMES,
    TEMPLATES,
    VENDOR_NAMES,
    ConfigArrays,
    config_arrays,
    joint_features,
    problem_features,
    roofline_us,
    vendor_features,
)
from torch_diode.model.problem_arrays import Floats, ProblemArrays
from torch_diode.types.candidate import ATEN
from torch_diode.types.candidates import Candidates
from torch_diode.types.errors import InvalidValueError
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape

Arrays = Mapping[str, Floats]

_CONFIG = len(CONFIG_NAMES)
_CLIP = 6.0
_MOST_LOG_RATIO = 12.0
_AT_ONCE = 256
"""Candidates that go through the network together: few enough to stay in the core's own cache."""
_UNSEEN = 2.0
"""A candidate of a template that was in no dataset comes after all others, at so many times the
slowest of them: nothing is known of it."""


class _Norm:
    """Standardisation with its clipping turned into bounds on the raw features, so that the rest
    of it disappears into the next layer's weights."""

    def __init__(self, arrays: Arrays, name: str, rows: slice = slice(None)) -> None:
        self.mean = arrays[f"{name}.mean"][rows]
        self.scale = arrays[f"{name}.scale"][rows]
        reach = np.where(self.scale > 0, _CLIP / np.where(self.scale > 0, self.scale, 1), 0)
        self.low = np.asarray(self.mean - reach, np.float32)
        self.high = np.asarray(self.mean + reach, np.float32)

    def __call__(self, features: Floats) -> Floats:
        return np.asarray((np.clip(features, self.low, self.high) - self.mean) * self.scale)

    def fold(self, weight: Floats) -> tuple[Floats, Floats]:
        """The layer that does the same to clipped raw features: weight (in by out) and bias."""
        folded = np.ascontiguousarray(weight.T * self.scale[:, None])
        return folded, np.asarray(-(self.mean @ folded))


class NumpyNetwork:
    """The weights of a `base` or `deep` network, ready to be asked."""

    def __init__(self, kind: str, arrays: Arrays) -> None:
        self.kind = kind
        self._arrays = arrays = {name: np.asarray(a, np.float32) for name, a in arrays.items()}
        try:
            self._prepare(arrays)
        except KeyError as fault:
            raise InvalidValueError(
                f"model weights: got none called {fault.args[0]!r}; expected those of a "
                f"{kind} network; train or fetch the model again"
            ) from None
        self._kept: WeakKeyDictionary[Candidates, dict[Any, tuple[ConfigArrays, Floats]]]
        self._kept = WeakKeyDictionary()

    def _prepare(self, arrays: Arrays) -> None:
        first = arrays["config_in.weight"]
        if first.shape[1] != _CONFIG + len(JOINT_NAMES):
            raise InvalidValueError(
                f"model weights: got {first.shape[1]} config features; expected "
                f"{_CONFIG + len(JOINT_NAMES)}; train again with this release"
            )
        self._problem_norm = _Norm(arrays, "problem_norm")
        self._aten_norm = _Norm(arrays, "aten.norm")
        self._config_norm = _Norm(arrays, "config_norm", slice(0, _CONFIG))
        self._joint_norm = _Norm(arrays, "config_norm", slice(_CONFIG, None))
        self._config_in = np.ascontiguousarray(first[:, :_CONFIG].T)
        self._joint_in, self._joint_bias = self._joint_norm.fold(first[:, _CONFIG:])
        self._tail = self._deep_tail if self.kind == "deep" else self._base_tail
        stack = "second" if self.kind == "deep" else "hidden"
        self._blocks = sum(name.startswith(f"{stack}.") for name in arrays) // 2
        expected = {"problem_norm.mean": len(PROBLEM_NAMES)}
        expected["aten.norm.mean"] = len(PROBLEM_NAMES) + len(VENDOR_NAMES)
        for name, width in expected.items():
            if arrays[name].shape != (width,):
                raise InvalidValueError(
                    f"model weights: got {name} of shape {arrays[name].shape}; expected ({width},)"
                )

    def predict_us(
        self, problem: MMShape, candidates: Candidates, hardware: Hardware
    ) -> npt.NDArray[np.float64]:
        """Microseconds for every candidate, in their order."""
        arrays = ProblemArrays.of(problem)
        features = problem_features(arrays, hardware)
        configs, first = self._of_candidates(candidates, problem, hardware)
        joint = joint_features(arrays, configs, hardware)
        np.maximum(joint, self._joint_norm.low, out=joint)
        np.minimum(joint, self._joint_norm.high, out=joint)
        log_ratio = self._tail(self._problem_norm(features), joint, first)
        vendor = candidates.is_template(ATEN)
        if vendor.any():
            log_ratio[vendor] = self.aten_log_ratio(features, vendor_features(arrays, hardware))
        np.clip(log_ratio, -_MOST_LOG_RATIO, _MOST_LOG_RATIO, out=log_ratio)
        times = np.exp(log_ratio.astype(np.float64)) * float(roofline_us(arrays, hardware)[0])
        return _unseen_last(times, candidates)

    def aten_log_ratio(self, problem: Floats, vendor: Floats) -> float:
        """ATen's log(time / roofline) for one problem: the mean of the head's members."""
        a = self._arrays
        x = self._aten_norm(np.concatenate([problem, vendor], axis=1))
        x = np.maximum(x @ a["aten.weights.0"] + a["aten.biases.0"], 0)
        x = np.maximum(x @ a["aten.weights.1"] + a["aten.biases.1"], 0)
        return float((x @ a["aten.weights.2"] + a["aten.biases.2"]).mean() + a["aten.shift"][0])

    def _of_candidates(
        self, candidates: Candidates, problem: MMShape, hardware: Hardware
    ) -> tuple[ConfigArrays, Floats]:
        """The configs' arrays, and the first layer's share that comes from them alone."""
        kind = (replace(problem, M=1, N=1, K=1, B=1), hardware)
        kept = self._kept.setdefault(candidates, {})
        if kind not in kept:
            configs = config_arrays(candidates, problem, hardware)
            share = self._config_norm(configs.features) @ self._config_in + self._joint_bias
            kept[kind] = configs, np.asarray(share, np.float32)
        return kept[kind]

    def _base_tail(self, problem: Floats, joint: Floats, first: Floats) -> Floats:
        a = self._arrays
        x = joint @ self._joint_in
        x += first
        x += problem @ a["problem_in.weight"].T + a["problem_in.bias"]
        np.maximum(x, 0, out=x)
        for number in range(self._blocks):
            x = x @ a[f"hidden.{number}.weight"].T
            x += a[f"hidden.{number}.bias"]
            np.maximum(x, 0, out=x)
        return np.asarray(x @ a["out.weight"][0] + a["out.bias"][0])

    def _deep_tail(self, problem: Floats, joint: Floats, first: Floats) -> Floats:
        """Whatever is linear is multiplied out before the candidates meet it: scales go into the
        weights, biases of a block into the next one's shift, and the last block's second layer
        into the output. What remains is the fewest passes over the candidates."""
        a = self._arrays
        code = problem[0]
        for number in (0, 1):
            code = a[f"encoder.{number}.weight"] @ code + a[f"encoder.{number}.bias"]
            code = np.maximum(code, 0)
        scale, shift = self._setting(0, code)
        enter = self._joint_in * scale, scale, shift
        ends = a["problem_out.weight"] @ code + a["problem_out.bias"]
        weights = a["out.weight"][0] + ends[:-1]
        passed = np.zeros_like(weights)
        blocks = []
        for number in range(self._blocks):
            scale, shift = self._setting(number + 1, code)
            weight = a[f"first.{number}.weight"] * scale[:, None]
            blocks.append((weight.T, shift + weight @ passed, a[f"second.{number}.weight"].T))
            passed = passed + a[f"second.{number}.bias"]
        result = np.empty(len(joint), np.float32)
        for start in range(0, len(joint), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            result[part] = _through(joint[part], first[part], enter, blocks, weights)
        result += a["out.bias"][0] + ends[-1] + passed @ weights
        return result

    def _setting(self, number: int, code: Floats) -> tuple[Floats, Floats]:
        weight = self._arrays[f"setters.{number}.weight"]
        values = weight @ code + self._arrays[f"setters.{number}.bias"]
        scale, shift = np.split(values, 2)
        return 1 + scale, shift


def _through(
    joint: Floats,
    first: Floats,
    enter: tuple[Floats, Floats, Floats],
    blocks: list[tuple[Floats, Floats, Floats]],
    weights: Floats,
) -> Floats:
    """Some candidates through a deep network's first layer, blocks and output."""
    weight, scale, shift = enter
    x = first * scale
    x += joint @ weight
    x += shift
    np.maximum(x, 0, out=x)
    result = np.zeros(len(x), np.float32)
    for number, (inward, shift, outward) in enumerate(blocks, 1):
        inner = x @ inward
        inner += shift
        np.maximum(inner, 0, out=inner)
        if number < len(blocks):
            x += inner @ outward
        else:
            result += inner @ (outward @ weights)
    result += x @ weights
    return result


def _unseen_last(times: npt.NDArray[np.float64], candidates: Candidates) -> npt.NDArray[np.float64]:
    unseen = np.zeros(len(candidates), bool)
    for template in candidates.templates:
        if template not in (ATEN, *TEMPLATES):
            unseen |= candidates.is_template(template)
    if unseen.any():
        slowest = times[~unseen].max() if not unseen.all() else times.max()
        times[unseen] = slowest * _UNSEEN
    return times
