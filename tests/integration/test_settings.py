from __future__ import annotations

from typing import Any

import pytest

from torch_diode.integration.settings import Settings, from_environment, switched_off
from torch_diode.types.errors import InvalidValueError


def test_an_empty_environment_gives_the_defaults() -> None:
    assert from_environment({}) == Settings()


def test_every_switch_is_read() -> None:
    environment = {
        "TORCH_DIODE_MODE": "Observe",
        "TORCH_DIODE_STRICT": "1",
        "TORCH_DIODE_TOP": "3",
        "TORCH_DIODE_TMA": "on",
        "TORCH_DIODE_EPILOGUES": "off",
        "TORCH_DIODE_MODEL": "m.pt",
        "TORCH_DIODE_TABLE": "t.json",
        "TORCH_DIODE_NEAREST": "1.5",
    }
    assert from_environment(environment) == Settings(
        mode="observe",
        strict=True,
        top=3,
        tma=True,
        epilogues=False,
        model="m.pt",
        table="t.json",
        nearest=1.5,
    )


@pytest.mark.parametrize(("text", "off"), [("0", True), ("off", True), ("1", False), ("", False)])
def test_torch_diode_0_is_off(text: str, off: bool) -> None:
    assert switched_off({"TORCH_DIODE": text}) is off


@pytest.mark.parametrize(
    "environment",
    [
        {"TORCH_DIODE_MODE": "best"},
        {"TORCH_DIODE_STRICT": "perhaps"},
        *({"TORCH_DIODE_TOP": text} for text in ("few", "0", "2.5")),
        *({"TORCH_DIODE_NEAREST": text} for text in ("near", "-1", "inf", "nan")),
    ],
)
def test_a_wrong_value_is_named(environment: dict[str, str]) -> None:
    with pytest.raises(InvalidValueError, match=next(iter(environment.values()))):
        from_environment(environment)


def test_values_that_are_not_given_stay() -> None:
    settings = Settings(mode="single", top=3)
    assert settings.changed(mode=None, top=7) == Settings(mode="single", top=7)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        *((name, "no", "expected True or False") for name in ("strict", "tma", "epilogues")),
        *(("top", value, "expected a number, 1 or more") for value in (0, -1, 2.5, "5")),
        ("heuristic", print, "expected a Heuristic"),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused(name: str, value: Any, expected: str) -> None:
    with pytest.raises(InvalidValueError, match=f"{name}: got .*; {expected}"):
        Settings(**{name: value})
