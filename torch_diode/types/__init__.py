"""What torch-diode talks about: problems, candidates, timings, and sets of them.

Frozen, checked on construction, and free of torch: this room imports no other.
"""
