"""Attention as a problem, and the dataset of its timings."""
