"""Collection of timings: plan, kernels, timers, workers, cluster and storage."""

BUSY_CPU = "TORCH_DIODE_BUSY_CPU"
"""Environment variable that accepts the timings of a busy CPU: for tests, not for data."""
