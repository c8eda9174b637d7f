"""Inductor's autotuning: feedback and clean benchmarking."""
