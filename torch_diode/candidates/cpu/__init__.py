"""Candidates on a CPU: library kernels, and micro-kernels of Inductor's C++ template."""
