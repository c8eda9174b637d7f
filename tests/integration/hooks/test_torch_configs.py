import pytest
from torch._inductor import config

from torch_diode.integration.hooks.torch_compat import config_options
from torch_diode.integration.hooks.torch_configs import TorchConfigs
from torch_diode.types.errors import InvalidValueError

OPTION, OTHER = "aggressive_fusion", "epilogue_fusion"
"""Options that no other test sets: one that was set in this process keeps its value."""


@pytest.fixture
def configs():
    before = {name: config_options()[name].default for name in (OPTION, OTHER)}
    yield TorchConfigs()
    for name, value in before.items():
        config_options()[name].default = value


def test_an_option_is_set_shown_and_restored(configs):
    before = config_options()[OPTION].default
    configs.turn_on("mine", {OPTION: True})
    assert config.aggressive_fusion is True
    assert configs.shown() == ("aggressive_fusion=True (mine)",)
    configs.turn_off("mine")
    assert config_options()[OPTION].default is before
    assert configs.shown() == ()


def test_what_the_user_sets_stays(configs):
    with config.patch(aggressive_fusion=False):
        configs.turn_on("mine", {OPTION: True})
        assert config.aggressive_fusion is False
    configs.turn_off("mine")


def test_what_another_has_changed_since_is_not_restored(configs):
    configs.turn_on("mine", {OPTION: True})
    config_options()[OPTION].default = "theirs"
    configs.turn_off("mine")
    assert config_options()[OPTION].default == "theirs"


def test_an_unknown_option_is_refused_and_none_is_set(configs):
    before = config_options()[OTHER].default
    with pytest.raises(InvalidValueError, match="got no_such_option; expected options of"):
        configs.turn_on("mine", {OTHER: not before, "no_such_option": 1})
    assert config_options()[OTHER].default is before
    assert configs.shown() == ()
