"""The timing networks."""
