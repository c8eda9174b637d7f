"""How torch gets to hear a heuristic: the only room that touches torch._inductor."""
