"""Collecting timings, and the problems to collect them on."""
