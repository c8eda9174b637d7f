"""Commands that time kernels or find the problems to time."""
