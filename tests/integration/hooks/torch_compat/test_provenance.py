"""Timings say when and with which templates they were made."""

import time

import torch._inductor.kernel.mm

from torch_diode.integration.hooks import torch_compat
from torch_diode.types.dataset import Dataset


def test_provenance_has_the_day_the_facts_and_the_templates_hashes():
    provenance = torch_compat.dataset_provenance(seed="7")
    assert provenance["seed"] == ("7",)
    assert time.strptime(provenance["collected"][0], "%Y-%m-%d")
    dataset = Dataset(Dataset.empty().table, provenance)
    assert dataset.template_hashes == torch_compat.template_hashes()
    expected = getattr(torch._inductor.kernel.mm.mm_template, "src_hash", None)
    assert dataset.template_hashes.get("triton::mm") == expected
    assert set(torch_compat.dataset_provenance(templates=False)) == {"collected"}
