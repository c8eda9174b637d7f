"""Lowering for a GPU that is not present, and tracing of programs."""
