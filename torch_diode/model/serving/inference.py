"""A trained network in numpy: what answers in a compile.

torch's dispatcher costs more than the arithmetic of a thousand candidates, and numpy gives the
same numbers in every process. What depends on the candidates and the kind of problem is kept from
one question to the next: a compile asks about the same space again and again.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

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
from torch_diode.model.networks.limits import MOST_LOG_RATIO
from torch_diode.model.serving.layers import Folded, candidate_layers
from torch_diode.model.serving.one_thread import one_thread
from torch_diode.model.serving.vendor_layers import UncertaintyLayers, VendorLayers
from torch_diode.types.bounded_cache import BoundedCache
from torch_diode.types.candidate import ATEN, DECOMPOSE_K
from torch_diode.types.candidate_arrays import Candidates
from torch_diode.types.errors import InvalidValueError
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape

Arrays = Mapping[str, Floats]
Rows = npt.NDArray[np.intp]

_CONFIG = len(CONFIG_NAMES)
_WIDTH = _CONFIG + len(JOINT_NAMES)
_KINDS_KEPT = 16
_MOST_KEPT = 8192
"""Candidates whose working memory is kept; more than any space has."""
_UNSEEN = 2.0
"""A candidate of a template that was in no dataset comes after all others, at so many times the
slowest of them: nothing is known of it."""


class _Kept(NamedTuple):
    """What is known of some candidates before a problem's sizes are."""

    configs: ConfigArrays
    features: Floats
    """Their own features, clipped: a row for each."""
    vendor: Rows
    split: Rows
    """Splits of K, if anything is known of them."""
    splits: Floats
    """Into how many parts each of those."""
    unseen: Rows


class NumpyNetwork:
    """The weights of a `base` or `deep` network, ready to be asked."""

    def __init__(self, kind: str, arrays: Arrays) -> None:
        self.kind = kind
        arrays = {name: np.asarray(a, np.float32) for name, a in arrays.items()}
        try:
            _check_widths(arrays)
            limits = Folded.limits(arrays, "config_norm")
            self._layers = candidate_layers(kind, arrays)
            self._aten = VendorLayers(arrays, "aten")
            self._split = VendorLayers(arrays, "split")
            self._doubt = UncertaintyLayers(arrays)
        except KeyError as fault:
            raise InvalidValueError(
                f"model weights: got none called {fault.args[0]!r}; expected those of a "
                f"{kind} network; train or fetch the model again"
            ) from None
        self._config_limits = [limit[:_CONFIG, None] for limit in limits]
        self._joint_low, self._joint_high = (limit[_CONFIG:, None] for limit in limits)
        self._kept: WeakKeyDictionary[Candidates, BoundedCache[Any, _Kept]] = WeakKeyDictionary()
        self._space = threading.local()

    def predict_us(
        self, problem: MMShape, candidates: Candidates, hardware: Hardware
    ) -> npt.NDArray[np.float64]:
        """Microseconds for every candidate, in their order."""
        return self.predict(problem, candidates, hardware)[0]

    def predict(
        self, problem: MMShape, candidates: Candidates, hardware: Hardware
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Microseconds for every candidate, in their order, and the error to expect of each, as a
        fraction of it."""
        with one_thread():
            return self._predict(problem, candidates, hardware)

    def _predict(
        self, problem: MMShape, candidates: Candidates, hardware: Hardware
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        arrays = OneProblem(problem)
        features = problem_features(arrays, hardware)
        kept = self._of_candidates(candidates, problem, hardware)
        rows = self._workspace(kept)
        joint = rows[1 + _CONFIG : 1 + _WIDTH]
        joint_features(arrays, kept.configs, hardware, out=joint)
        np.maximum(joint, self._joint_low, out=joint)
        np.minimum(joint, self._joint_high, out=joint)
        log_ratio = self._layers(features[0], rows)
        aten, apart = self._aten(features[0], vendor_features(arrays, hardware))
        doubt = self._doubt(features[0], apart[0])
        sigma = np.empty(len(candidates))
        sigma.fill(doubt[0])
        log_ratio[kept.vendor], sigma[kept.vendor] = aten[0], doubt[1]
        if len(kept.split):
            calls = split_features(ProblemArrays.of(problem), kept.splits, hardware)
            log_ratio[kept.split], _ = self._split(features[0], calls)
            sigma[kept.split] = doubt[2]
        np.maximum(log_ratio, -MOST_LOG_RATIO, out=log_ratio)
        np.minimum(log_ratio, MOST_LOG_RATIO, out=log_ratio)
        times = log_ratio.astype(np.float64)
        np.exp(times, out=times)
        times *= float(roofline_us(arrays, hardware))
        if len(kept.unseen):
            _put_last(times, kept.unseen)
        return times, sigma

    def _of_candidates(self, candidates: Candidates, problem: MMShape, hardware: Hardware) -> _Kept:
        p = problem
        kind = (p.dtype, p.out_dtype, p.transpose_a, p.transpose_b, p.tf32, p.op, p.bias, hardware)
        kinds = self._kept.get(candidates)
        if kinds is None:
            kinds = self._kept.setdefault(candidates, BoundedCache(_KINDS_KEPT))
        kept = kinds.get(kind)
        if kept is None:
            configs = config_arrays(candidates, problem, hardware)
            low, high = self._config_limits
            features = np.ascontiguousarray(np.clip(configs.features.T, low, high))
            vendor = np.flatnonzero(candidates.is_template(ATEN))
            split = self._known_splits(candidates)
            splits = candidates.fields["split_k"][split].astype(np.float32)
            unseen = np.setdiff1d(_unseen(candidates), split)
            kept = kinds[kind] = _Kept(configs, features, vendor, split, splits, unseen)
        return kept

    def _known_splits(self, candidates: Candidates) -> Rows:
        if not self._split.trained or DECOMPOSE_K not in candidates.templates:
            return np.zeros(0, np.intp)
        return np.flatnonzero(candidates.is_template(DECOMPOSE_K))

    def _workspace(self, kept: _Kept) -> Floats:
        """Rows for the constant one, the features and the hidden units, a column a candidate; the
        candidates' own features are in place.

        A thread keeps its own: fresh memory of this size costs as much as a layer.
        """
        height, count = 1 + _WIDTH + self._layers.rows, kept.features.shape[1]
        size = height * count
        held, of = getattr(self._space, "held", (None, None))
        if held is None or len(held) < size:
            held, of = np.empty(size, np.float32), None
        rows = held[:size].reshape(height, count)
        if of is not kept:
            rows[0] = 1
            rows[1 : 1 + _CONFIG] = kept.features
            if count <= _MOST_KEPT:
                self._space.held = held, kept
        return rows


def _check_widths(arrays: Arrays) -> None:
    found = arrays["config_in.weight"].shape[1]
    if found != _WIDTH:
        raise InvalidValueError(
            f"model weights: got {found} config features; expected {_WIDTH}; train again with "
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


def _unseen(candidates: Candidates) -> Rows:
    unseen = np.zeros(len(candidates), bool)
    for template in candidates.templates:
        if template not in (ATEN, *TEMPLATES):
            unseen |= candidates.is_template(template)
    return np.flatnonzero(unseen)


def _put_last(times: npt.NDArray[np.float64], unseen: Rows) -> None:
    others = np.delete(times, unseen)
    times[unseen] = (others if len(others) else times).max() * _UNSEEN
