"""What is true of all timings made here and now: the day, and the templates they are of."""

from __future__ import annotations

import time

from torch_diode.integration.hooks import torch_compat


def dataset_provenance(templates: bool = True, **facts: str) -> dict[str, tuple[str, ...]]:
    """A dataset's provenance, with these facts beside it; without templates where only ATen is
    timed."""
    known: dict[str, tuple[str, ...]] = {name: (text,) for name, text in facts.items()}
    known["collected"] = (time.strftime("%Y-%m-%d"),)
    if templates:
        import torch._inductor.kernel.mm  # noqa: F401  the hashes are of what is imported

        hashes = torch_compat.template_hashes()
        if hashes:
            known["templates"] = tuple(f"{name}={text}" for name, text in hashes.items())
    return known
