"""The domain types: problems, candidates, timings, rankings, and sets of them.

Frozen, checked on construction, and free of torch; this package imports no other.
"""
