"""Candidates on a CPU: library kernels."""
