"""The matmul integration by itself."""

from __future__ import annotations

from tests.integration.cases import CONFIG
from tests.integration.forced import Forced
from torch_diode.integration.hooks.fallback import Fallback
from torch_diode.integration.matmul import MatmulIntegration
from torch_diode.integration.settings import Settings
from torch_diode.integration.sockets import Sockets


def test_it_waits_until_torch_asks_and_is_off_afterwards() -> None:
    integration = MatmulIntegration(Settings(Forced(CONFIG)))
    sockets = Sockets(Fallback())
    assert integration.status() == ("off", "")
    integration.install(sockets)
    assert integration.status()[0] == "waiting"
    integration.uninstall(sockets)
    assert integration.status() == ("off", "")


def test_the_dummy_is_answered_through_this_torch() -> None:
    assert MatmulIntegration().probe() == ""


def test_settings_can_be_changed_for_a_while() -> None:
    integration = MatmulIntegration(Settings(Forced(CONFIG, name="first")))
    before = integration.fingerprint([])
    with integration.changed(Settings(Forced(None, name="second"))):
        assert integration.loaded() == {"any hardware": "second"}
        assert integration.fingerprint([]) != before
    assert integration.fingerprint([]) == before
    assert integration.has_heuristic()
