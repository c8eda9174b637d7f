"""Inference of a trained network in numpy, as a compile uses it.

torch's dispatcher costs more than the arithmetic of a thousand candidates, and numpy gives the
same numbers in every process. What depends on the candidates and the kind of problem is cached
between calls: a compile ranks the same space again and again.
"""

from __future__ import annotations

import threading
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from torch_diode._bounded_cache import BoundedCache
from torch_diode.model.features.extractor import (
    ConfigArrays,
    config_arrays,
    joint_features,
    problem_features,
)
from torch_diode.model.features.names import (
    CONFIG_NAMES,
    JOINT_NAMES,
    PROBLEM_NAMES,
    SPLIT_NAMES,
    TEMPLATES,
    VENDOR_NAMES,
)
from torch_diode.model.features.problem_arrays import Floats, OneProblem, ProblemArrays
from torch_diode.model.features.roofline import roofline_us
from torch_diode.model.features.vendor import split_features, vendor_features
from torch_diode.model.networks import MAX_LOG_RATIO
from torch_diode.model.serving.layers import (
    Arrays,
    StandardisedLayer,
    UncertaintyLayers,
    VendorLayers,
    candidate_layers,
)
from torch_diode.model.serving.one_thread import one_thread
from torch_diode.types.candidate import ATEN, DECOMPOSE_K
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.errors import InvalidValueError
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape

Rows = npt.NDArray[np.intp]

_CONFIG = len(CONFIG_NAMES)
_WIDTH = _CONFIG + len(JOINT_NAMES)
_CACHED_KINDS = 16
_MAX_WORKSPACE = 8192
"""Candidates up to which a thread's working memory is kept; more than any space has."""
_UNKNOWN_FACTOR = 2.0
"""Candidates of an unknown template are predicted at this multiple of the slowest other one."""


class _CandidateData(NamedTuple):
    """Arrays that depend on the candidates and the kind of problem, but not on its sizes."""

    configs: ConfigArrays
    features: Floats
    """Config features, clipped: a row each."""
    vendor: Rows
    split: Rows
    """Splits of K, if the model has learnt any."""
    splits: Floats
    """Number of parts of each of those."""
    unknown: Rows


class NumpyNetwork:
    """A `base` or `deep` network from its weights by name."""

    @one_thread()  # by which threads a sum is shared decides its last digits
    def __init__(self, kind: str, arrays: Arrays) -> None:
        self.kind = kind
        arrays = {name: np.asarray(a, np.float32) for name, a in arrays.items()}
        try:
            _check_widths(arrays)
            limits = StandardisedLayer.limits(arrays, "config_norm")
            self._layers = candidate_layers(kind, arrays)
            self._aten = VendorLayers(arrays, "aten")
            self._split = VendorLayers(arrays, "split")
            self._uncertainty = UncertaintyLayers(arrays)
        except KeyError as fault:
            raise InvalidValueError(
                f"model weights: got none called {fault.args[0]!r}; expected those of a "
                f"{kind} network; train or fetch the model again"
            ) from None
        self._config_limits = [limit[:_CONFIG, None] for limit in limits]
        self._joint_low, self._joint_high = (limit[_CONFIG:, None] for limit in limits)
        self._cache: WeakKeyDictionary[Candidates, BoundedCache[Any, _CandidateData]]
        self._cache = WeakKeyDictionary()
        self._local = threading.local()

    def predict_us(
        self, problem: MMShape, candidates: Candidates, hardware: Hardware
    ) -> npt.NDArray[np.float64]:
        """Predict the microseconds of every candidate, in their order."""
        return self.predict(problem, candidates, hardware)[0]

    def predict(
        self, problem: MMShape, candidates: Candidates, hardware: Hardware
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Predict the microseconds of every candidate, in their order, and the expected error of
        each, as a fraction."""
        with one_thread():
            return self._predict(problem, candidates, hardware)

    def _predict(
        self, problem: MMShape, candidates: Candidates, hardware: Hardware
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        arrays = OneProblem(problem)
        features = problem_features(arrays, hardware)
        data = self._candidate_data(candidates, problem, hardware)
        rows = self._workspace(data)
        joint = rows[1 + _CONFIG : 1 + _WIDTH]
        joint_features(arrays, data.configs, hardware, out=joint)
        np.maximum(joint, self._joint_low, out=joint)
        np.minimum(joint, self._joint_high, out=joint)
        log_ratio = self._layers(features[0], rows)
        aten, spread = self._aten(features[0], vendor_features(arrays, hardware))
        sigmas = self._uncertainty(features[0], spread[0])
        sigma = np.empty(len(candidates))
        sigma.fill(sigmas[0])
        log_ratio[data.vendor], sigma[data.vendor] = aten[0], sigmas[1]
        if len(data.split):
            calls = split_features(ProblemArrays.of(problem), data.splits, hardware)
            log_ratio[data.split], _ = self._split(features[0], calls)
            sigma[data.split] = sigmas[2]
        np.maximum(log_ratio, -MAX_LOG_RATIO, out=log_ratio)
        np.minimum(log_ratio, MAX_LOG_RATIO, out=log_ratio)
        times = log_ratio.astype(np.float64)
        np.exp(times, out=times)
        times *= float(roofline_us(arrays, hardware))
        if len(data.unknown):
            _put_last(times, data.unknown)
        return times, sigma

    def _candidate_data(
        self, candidates: Candidates, problem: MMShape, hardware: Hardware
    ) -> _CandidateData:
        p = problem
        kind = (p.dtype, p.out_dtype, p.transpose_a, p.transpose_b, p.tf32, p.op, p.bias, hardware)
        kinds = self._cache.get(candidates)
        if kinds is None:
            kinds = self._cache.setdefault(candidates, BoundedCache(_CACHED_KINDS))
        data = kinds.get(kind)
        if data is None:
            configs = config_arrays(candidates, problem, hardware)
            low, high = self._config_limits
            features = np.ascontiguousarray(np.clip(configs.features.T, low, high))
            vendor = np.flatnonzero(candidates.is_template(ATEN))
            split = self._known_splits(candidates)
            splits = candidates.fields["split_k"][split].astype(np.float32)
            unknown = np.setdiff1d(_unknown(candidates), split)
            data = _CandidateData(configs, features, vendor, split, splits, unknown)
            kinds[kind] = data
        return data

    def _known_splits(self, candidates: Candidates) -> Rows:
        if not self._split.trained or DECOMPOSE_K not in candidates.templates:
            return np.zeros(0, np.intp)
        return np.flatnonzero(candidates.is_template(DECOMPOSE_K))

    def _workspace(self, data: _CandidateData) -> Floats:
        """Rows for the constant one, the features and the hidden units, one column per candidate,
        with the config features filled in.

        Each thread keeps its own: fresh memory of this size costs as much as a layer.
        """
        height, count = 1 + _WIDTH + self._layers.rows, data.features.shape[1]
        size = height * count
        memory, filled_with = getattr(self._local, "workspace", (None, None))
        if memory is None or len(memory) < size:
            memory, filled_with = np.empty(size, np.float32), None
        rows = memory[:size].reshape(height, count)
        if filled_with is not data:
            rows[0] = 1
            rows[1 : 1 + _CONFIG] = data.features
            if count <= _MAX_WORKSPACE:
                self._local.workspace = memory, data
        return rows


def _check_widths(arrays: Arrays) -> None:
    width = arrays["config_in.weight"].shape[1]
    if width != _WIDTH:
        raise InvalidValueError(
            f"model weights: got {width} config features; expected {_WIDTH}; train again with "
            "this release"
        )
    expected = {"problem_norm.mean": len(PROBLEM_NAMES)}
    expected["aten.norm.mean"] = len(PROBLEM_NAMES) + len(VENDOR_NAMES)
    expected["split.norm.mean"] = len(PROBLEM_NAMES) + len(SPLIT_NAMES)
    for name, width in expected.items():
        if arrays[name].shape != (width,):
            raise InvalidValueError(
                f"model weights: got {name} of shape {arrays[name].shape}; expected ({width},)"
            )


def _unknown(candidates: Candidates) -> Rows:
    unknown = np.zeros(len(candidates), bool)
    for template in candidates.templates:
        if template not in (ATEN, *TEMPLATES):
            unknown |= candidates.is_template(template)
    return np.flatnonzero(unknown)


def _put_last(times: npt.NDArray[np.float64], unknown: Rows) -> None:
    others = np.delete(times, unknown)
    times[unknown] = (others if len(others) else times).max() * _UNKNOWN_FACTOR
