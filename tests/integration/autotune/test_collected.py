import time

import torch._inductor.kernel.mm

from torch_diode.integration.hooks.torch_compat import dataset_provenance
from torch_diode.integration.hooks import torch_compat
from torch_diode.types.dataset import Dataset


def test_timings_say_the_day_the_seed_and_the_templates_torch_has() -> None:
    found = dataset_provenance(seed="7")
    assert found["seed"] == ("7",)
    assert time.strptime(found["collected"][0], "%Y-%m-%d")
    dataset = Dataset(Dataset.empty().table, found)
    assert dataset.template_hashes == torch_compat.template_hashes()
    hashed = getattr(torch._inductor.kernel.mm.mm_template, "src_hash", None)
    assert dataset.template_hashes.get("triton::mm") == hashed


def test_where_only_aten_is_timed_no_template_is_named() -> None:
    assert set(dataset_provenance(templates=False)) == {"collected"}
