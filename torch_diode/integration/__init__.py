"""Binding of heuristics to torch; the only package that touches torch._inductor."""
