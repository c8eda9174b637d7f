"""The timing networks, and what their torch and numpy forms share."""

from collections.abc import Mapping
from typing import TypeVar

LIBRARY = "library"
"""Kind of the networks for CPUs, with one output per candidate."""
DOUBT_FEATURES = (
    *("log_roofline_us", "log2_threads", "transpose_a", "transpose_b"),
    *("precision_bfloat16", "precision_float16", "op_addmm", "op_bmm", "op_baddbmm"),
)
"""Features of a CPU's problem that the deviation of its predictions depends on."""
CLIP_DEVIATIONS = 6.0
"""Standardised features are clipped to this many deviations, so that problems far outside the
training range do not extrapolate without limit."""
SPREAD_FLOOR, SPREAD_SHIFT = 1e-3, 3.0
"""The spread of a head's members is an input of the uncertainty as log(spread + floor) + shift."""
MIN_LOG_SIGMA, MAX_LOG_SIGMA = -6.0, 0.5
MAX_LOG_RATIO = 12.0
"""Predicted times are kept within this log distance of the roofline."""

_FILE_NAMES = {"film_layers": "setters", "prefilter_out": "glance_out", "uncertainty": "doubt"}
"""Modules of a network whose weights have older names in model files."""
_MODULE_NAMES = {file_name: name for name, file_name in _FILE_NAMES.items()}

Value = TypeVar("Value")


def file_names(weights: Mapping[str, Value]) -> dict[str, Value]:
    """Rename a network's weights to their names in a model file."""
    return _renamed(weights, _FILE_NAMES)


def module_names(weights: Mapping[str, Value]) -> dict[str, Value]:
    """Rename the weights of a model file to those of its network."""
    return _renamed(weights, _MODULE_NAMES)


def _renamed(weights: Mapping[str, Value], names: Mapping[str, str]) -> dict[str, Value]:
    parts = {name: name.partition(".") for name in weights}
    return {
        names.get(module, module) + dot + rest: weights[name]
        for name, (module, dot, rest) in parts.items()
    }
