"""The integration of scaled dot-product attention on a CPU: ATen's kernel, or one of ours."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from torch_diode.integration.answers import AnswersIntegration
from torch_diode.integration.base import FAILED, OFF, ON, WAITING
from torch_diode.integration.hooks import device_hardware, torch_compat
from torch_diode.integration.hooks.fallback import Abstained, Fallback
from torch_diode.integration.hooks.lowering import LoweringHook

if TYPE_CHECKING:
    from torch_diode.heuristics.custom import CustomAnswer
    from torch_diode.heuristics.questions import CpuAttention
    from torch_diode.integration.installation import Registration
    from torch_diode.types.hardware import Hardware

SDPA = "sdpa"
OPERATOR = "_scaled_dot_product_flash_attention_for_cpu"


class CpuAttentionIntegration(AnswersIntegration):
    """The functions for `sdpa`, then the shipped rule of this CPU, which takes the C++ kernel where
    measurements have shown it to be faster."""

    name = "cpu attention"
    decisions = (SDPA,)

    def __init__(self, fallback: Fallback) -> None:
        super().__init__(fallback)
        self._hook = LoweringHook(fallback, OPERATOR, self._lower)

    @property
    def hooks(self) -> tuple[str, ...]:  # type: ignore[override]
        """None: this decision is not the choices handler's."""
        return ()

    def install(self, registration: Registration) -> None:
        """Wait until torch imports its lowerings."""
        self.state, self.detail = WAITING, "torch has not imported its lowerings yet"
        registration.cache_keys.add(self)
        self._hook.install(self._installed)

    def _installed(self, fault: str) -> None:
        self.state = FAILED if fault else ON
        self.detail = fault or f"answers {OPERATOR}"

    def uninstall(self, registration: Registration) -> None:
        """Restore torch's lowering, and remove the fingerprint."""
        self._hook.uninstall()
        registration.cache_keys.remove(self)
        self.state, self.detail = OFF, ""

    def _lower(self, own: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        lowered = None
        if self.state == ON:
            lowered = self.fallback.run(lambda: self._kernel(args, kwargs))
        return own(*args, **kwargs) if lowered is None else lowered

    def _kernel(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The node of the kernel; None where ATen's is to run."""
        from torch_diode.heuristics import questions
        from torch_diode.integration.cpu.cpp_attention import AttentionCall
        from torch_diode.types.candidate import ATEN, CPP_ATTENTION

        call = AttentionCall.of(args, kwargs)
        hardware = device_hardware.hardware_of(call.query.get_device())
        if not self._asked(hardware):
            raise Abstained(f"attention: no rule for {hardware.label}")

        check_available(hardware)

        def question() -> CpuAttention:
            batch, heads, queries, keys, depth = call.sizes
            return questions.CpuAttention(
                hardware=hardware,
                default=ATEN,
                batch=batch,
                heads=heads,
                queries=queries,
                keys=keys,
                head_dim=depth,
                causal=call.causal,
                mask=call.mask_kind,
            )

        return call.kernel() if self._answer(question, self._decide) == CPP_ATTENTION else None

    def _asked(self, hardware: Hardware) -> tuple[CustomAnswer, ...]:
        """The functions of the settings, then the shipped rule."""
        from torch_diode.heuristics.cpu_attention import shipped_rule
        from torch_diode.integration.default_heuristic import NONE

        rule = None if self.settings.model == NONE else shipped_rule(hardware)
        if rule is None or (self.settings.strict and not rule.is_of(torch_compat.torch_release())):
            return self.functions
        return (*self.functions, rule)

    def fingerprint(self, devices: Iterable[Any]) -> str:
        """That of the functions and the rule, where a graph runs on a CPU."""
        cpu = next((device for device in devices if device.type == "cpu"), None)
        asked = () if cpu is None else self._asked(device_hardware.hardware_of(cpu))
        return self.digest_of(asked) if asked else ""


def check_available(hardware: Hardware) -> None:
    """Raise where a C++ kernel must not stand in for ATen's, or has failed on this machine."""
    from torch_diode.integration.cpu import cpp_gemm, onednn, trial

    reason = (
        onednn.why_unavailable()
        or ("config.batch_invariant asks for one kernel" if torch_compat.batch_invariant() else "")
        or cpp_gemm.why_unavailable(hardware)
        or trial.fault_of(trial.ATTENTION)
    )
    if reason:
        raise Abstained(f"attention: {reason}")
