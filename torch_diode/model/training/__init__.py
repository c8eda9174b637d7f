"""Training of the timing networks."""
