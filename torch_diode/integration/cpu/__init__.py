"""Inductor choices for library kernels on a CPU."""
