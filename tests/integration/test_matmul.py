"""The matmul integration by itself."""

from tests.integration.cases import CONFIG
from tests.integration.forced import Forced
from torch_diode.integration.installation import Registration
from torch_diode.integration.matmul import MatmulIntegration
from torch_diode.integration.settings import Settings


def test_it_waits_until_torch_uses_its_handler_and_is_off_afterwards():
    integration = MatmulIntegration(Settings(Forced(CONFIG)))
    registration = Registration()
    assert integration.status() == ("off", "")
    integration.install(registration)
    assert integration.status()[0] == "waiting"
    integration.uninstall(registration)
    assert integration.status() == ("off", "")


def test_settings_can_be_changed_for_a_while():
    integration = MatmulIntegration(Settings(Forced(CONFIG, name="first")))
    before = integration.fingerprint([])
    with integration.changed(Settings(Forced(None, name="second"))):
        assert integration.loaded() == {"any hardware": "second"}
        assert integration.fingerprint([]) != before
    assert integration.fingerprint([]) == before
    assert integration.has_heuristic()
