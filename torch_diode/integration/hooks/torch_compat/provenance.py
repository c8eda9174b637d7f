"""The provenance of timings made now: day, template hashes, facts of the caller."""

from __future__ import annotations

import sys
import time

from torch_diode.integration.hooks.torch_compat.templates import tma_template


def template_hashes() -> dict[str, str]:
    """The templates' source hashes by name; empty on 2.9, which has none, and until Inductor is
    imported."""
    if "torch._inductor.kernel.mm" not in sys.modules:
        return {}
    import torch._inductor.kernel.bmm as bmm
    import torch._inductor.kernel.mm as mm

    templates = [mm.mm_template, bmm.bmm_template, tma_template()]
    hashes = {t.uid: getattr(t, "src_hash", None) for t in templates if t is not None}
    return {name: text for name, text in hashes.items() if text}


def dataset_provenance(templates: bool = True, **facts: str) -> dict[str, tuple[str, ...]]:
    """The provenance of timings made now: the day, the templates' hashes, and these facts.

    Without `templates`, for timings of ATen alone, Inductor is not imported.
    """
    provenance: dict[str, tuple[str, ...]] = {name: (text,) for name, text in facts.items()}
    provenance["collected"] = (time.strftime("%Y-%m-%d"),)
    if templates:
        import torch._inductor.kernel.mm  # noqa: F401  the hashes are of imported templates

        hashes = template_hashes()
        if hashes:
            provenance["templates"] = tuple(f"{name}={text}" for name, text in hashes.items())
    return provenance
