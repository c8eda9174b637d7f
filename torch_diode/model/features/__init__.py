"""Features: what a model sees of a problem and its candidates."""
