"""Binding of heuristics to torch; the only package that touches torch._inductor."""

from torch_diode._exports import on_first_use

_EXPORTS = {
    "base": "BaseIntegration",
    "hooks.choices": "DiodeInductorChoices",
    "matmul": "MatmulIntegration",
    "registration": "register_integration",
}
__getattr__, __dir__, __all__ = on_first_use(__name__, _EXPORTS)
