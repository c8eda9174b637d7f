#!/usr/bin/env python3
"""Ten lines of your own logic, used before the trained model, and checked."""

from __future__ import annotations

import torch_diode as td
from torch_diode.heuristics.testing.conformance import check_heuristic


@td.heuristic("matmul")
def few_rows(problem, candidates):
    """Prefer the smallest tiles, the largest steps along K and many stages for up to 16 rows, where
    a product is bound by reading its weights."""
    if problem.M > 16:
        return None  # abstain: the next heuristic decides
    low = [c for c in candidates if c.config and c.config.block_m == 16]
    return sorted(low, key=lambda c: (-c.config.block_k, -c.config.num_stages, str(c)))


model = td.ModelHeuristic(td.load_model("matmul", hardware="nvidia-h200"), "model")
both = td.Chain(few_rows, model)
td.enable(both)  # torch.compile uses both from here on

print(check_heuristic(few_rows).raise_if_failed())
for rows in (8, 512):
    problem = td.MMShape("mm", rows, 4096, 4096, transpose_b=True)
    space = td.rank(problem, hardware="nvidia-h200", heuristic=model)
    chosen = few_rows(problem, [p.candidate for p in space])
    print(f"{problem}: {f'few_rows: {chosen[0]}' if chosen else f'model: {space[0].candidate}'}")
