"""This torch is supported, and what an unsupported one lacks is named."""

from torch._inductor.choices import InductorChoices

from torch_diode.integration.hooks import torch_compat


def test_a_missing_hook_is_named(monkeypatch):
    monkeypatch.delattr(InductorChoices, torch_compat.matmul_hook())
    torch_compat.matmul_hook.cache_clear()
    try:
        assert "has neither" in torch_compat.why_unusable()
    finally:
        monkeypatch.undo()
        torch_compat.matmul_hook.cache_clear()


def test_changed_arguments_are_named(monkeypatch):
    def hook(self, everything): ...

    monkeypatch.setattr(InductorChoices, torch_compat.matmul_hook(), hook)
    assert "has no argument" in torch_compat.why_unusable()


def test_a_missing_part_is_named(monkeypatch):
    import torch._inductor.codecache as codecache

    monkeypatch.delattr(codecache, "FxGraphHashDetails")
    assert torch_compat.why_unusable() == "torch._inductor.codecache has no FxGraphHashDetails"
