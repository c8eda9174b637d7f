"""Hooks into torch._inductor: import hook, choices handler, cache key and fallback."""
