"""What the environment's switches mean."""

from __future__ import annotations

import pytest

from torch_diode.integration.settings import SWITCHES, Settings, from_environment, switched_off
from torch_diode.types.errors import InvalidValueError


def test_nothing_set_is_the_default() -> None:
    assert from_environment({}) == Settings()


def test_every_switch_is_read() -> None:
    settings = from_environment(
        {
            "TORCH_DIODE_MODE": "Observe",
            "TORCH_DIODE_STRICT": "1",
            "TORCH_DIODE_TMA": "on",
            "TORCH_DIODE_EPILOGUES": "off",
            "TORCH_DIODE_MODEL": "m.pt",
            "TORCH_DIODE_TABLE": "t.json",
        }
    )
    assert settings == Settings(
        mode="observe", strict=True, tma=True, epilogues=False, model="m.pt", table="t.json"
    )
    assert set(SWITCHES) == {
        "TORCH_DIODE",
        "TORCH_DIODE_EPILOGUES",
        "TORCH_DIODE_MODE",
        "TORCH_DIODE_MODEL",
        "TORCH_DIODE_STRICT",
        "TORCH_DIODE_TABLE",
        "TORCH_DIODE_TMA",
    }


@pytest.mark.parametrize(("text", "off"), [("0", True), ("off", True), ("1", False), ("", False)])
def test_torch_diode_0_is_off(text: str, off: bool) -> None:
    assert switched_off({"TORCH_DIODE": text}) is off


@pytest.mark.parametrize(
    "environment", [{"TORCH_DIODE_MODE": "best"}, {"TORCH_DIODE_STRICT": "perhaps"}]
)
def test_a_wrong_value_is_refused_by_name(environment: dict[str, str]) -> None:
    with pytest.raises(InvalidValueError, match=next(iter(environment.values()))):
        from_environment(environment)


def test_what_is_not_given_stays() -> None:
    settings = Settings(mode="single", top=3)
    assert settings.changed(mode=None, top=7) == Settings(mode="single", top=7)


@pytest.mark.parametrize("name", ["strict", "tma", "epilogues"])
def test_a_switch_is_on_or_off_and_no_word_for_it(name: str) -> None:
    with pytest.raises(InvalidValueError, match=f"{name}: got 'no'; expected True or False"):
        Settings(**{name: "no"})  # type: ignore[arg-type]
