"""Inference in numpy, as a compile uses it."""
