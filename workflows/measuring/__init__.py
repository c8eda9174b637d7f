"""Measuring code shared by workflows and benchmarks; not part of the wheel."""
