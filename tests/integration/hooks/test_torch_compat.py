"""This torch is one of those supported, and a torch that is not is told apart."""

from __future__ import annotations

import pytest
from torch._inductor.choices import InductorChoices

from torch_diode.integration.hooks import torch_compat


def test_this_release_is_usable() -> None:
    assert torch_compat.why_unusable() == ""


def test_a_missing_hook_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(InductorChoices, torch_compat.matmul_hook())
    torch_compat.matmul_hook.cache_clear()
    try:
        assert "has neither" in torch_compat.why_unusable()
    finally:
        monkeypatch.undo()
        torch_compat.matmul_hook.cache_clear()


def test_changed_arguments_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def hook(self: object, everything: object) -> None: ...

    monkeypatch.setattr(InductorChoices, torch_compat.matmul_hook(), hook)
    assert "has no argument" in torch_compat.why_unusable()


def test_a_missing_part_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch._inductor.codecache as codecache

    monkeypatch.delattr(codecache, "FxGraphHashDetails")
    assert torch_compat.why_unusable() == "torch._inductor.codecache has no FxGraphHashDetails"
