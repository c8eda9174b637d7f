"""Storage of timings while a collection runs."""
