"""GPU candidates: Triton template configs, eligibility, shared memory and registers."""
