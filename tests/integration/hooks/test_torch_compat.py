"""This torch is one of those supported, and a torch that is not is told apart."""

from __future__ import annotations

import pytest
from torch._inductor.choices import InductorChoices

from torch_diode.integration import releases


def test_this_release_is_usable() -> None:
    assert releases.why_unusable() == ""


def test_a_missing_hook_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(InductorChoices, releases.matmul_hook())
    releases.matmul_hook.cache_clear()
    try:
        assert "has neither" in releases.why_unusable()
    finally:
        monkeypatch.undo()
        releases.matmul_hook.cache_clear()


def test_changed_arguments_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def hook(self: object, everything: object) -> None: ...

    monkeypatch.setattr(InductorChoices, releases.matmul_hook(), hook)
    assert "has no argument" in releases.why_unusable()


def test_a_missing_part_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch._inductor.codecache as codecache

    monkeypatch.delattr(codecache, "FxGraphHashDetails")
    assert releases.why_unusable() == "torch._inductor.codecache has no FxGraphHashDetails"
