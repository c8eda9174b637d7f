"""Worker processes that compile and time kernels."""
