"""Where timings come from."""
