"""Kernels to time: source, compilation, launch and reference results."""
