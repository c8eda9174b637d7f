"""Integrations as another package offers them; all but the first fail, each in a way of its own."""

from torch_diode import BaseIntegration
from torch_diode.integration.base import ChoicesIntegration

NAMES = ("looped", "raising", "unset", "unloadable", "no_integration")


class LoopedReductions(ChoicesIntegration):
    """No reduction is persistent."""

    name = "looped"
    hooks = ("should_use_persistent_reduction",)
    configs = {"triton.multi_kernel": 0, "loop_ordering_after_fusion": False}  # noqa: RUF012

    def mixin(self, handler):
        """A class with the hook."""

        class Mixin:
            @staticmethod
            def should_use_persistent_reduction(features, cooperative_reduction):
                return False

        return Mixin

    def fingerprint(self, devices):
        """One that never changes."""
        return "looped 1"


class Raising(LoopedReductions):
    """Raises whenever it is asked."""

    name = "raising"
    hooks = ("reduction_split_factor",)
    configs = {}  # noqa: RUF012

    def mixin(self, handler):
        """A class whose hook raises."""

        class Mixin:
            def reduction_split_factor(self, *args, **kwargs):
                raise KeyError("no such device")

        return Mixin

    def fingerprint(self, devices):
        """Raises for a GPU."""
        raise OSError("its file is gone")


class WrongConfig(LoopedReductions):
    """Needs an option that torch does not have."""

    name = "unset"
    configs = {"brew_coffee": True}  # noqa: RUF012


class NoIntegration(BaseIntegration):
    """Abstract, so that no instance can be made."""
