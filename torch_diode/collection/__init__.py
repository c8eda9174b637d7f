"""Collection of timings: plan, kernels, timers, workers, cluster and storage."""
