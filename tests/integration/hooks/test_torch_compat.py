"""This torch is supported, and what an unsupported one lacks is named."""

import time

import torch._inductor.kernel.mm
from torch._inductor.choices import InductorChoices

from torch_diode.integration.hooks import torch_compat
from torch_diode.types.dataset import Dataset


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


def test_provenance_has_the_day_the_facts_and_the_templates_hashes():
    provenance = torch_compat.dataset_provenance(seed="7")
    assert provenance["seed"] == ("7",)
    assert time.strptime(provenance["collected"][0], "%Y-%m-%d")
    dataset = Dataset(Dataset.empty().table, provenance)
    assert dataset.template_hashes == torch_compat.template_hashes()
    expected = getattr(torch._inductor.kernel.mm.mm_template, "src_hash", None)
    assert dataset.template_hashes.get("triton::mm") == expected
    assert set(torch_compat.dataset_provenance(templates=False)) == {"collected"}


def test_the_batch_limit_is_that_of_this_release():
    splits = not torch.__version__.startswith(("2.9.", "2.10.", "2.11."))
    assert torch_compat.max_batch_size() == (None if splits else 65535)
