"""Conformance suite for heuristics, for use in third-party tests."""

from torch_diode.heuristics.testing.conformance import (
    ConformanceError,
    ConformanceReport,
    check_heuristic,
    edge_problems,
)

__all__ = ["ConformanceError", "ConformanceReport", "check_heuristic", "edge_problems"]
