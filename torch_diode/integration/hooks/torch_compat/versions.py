"""The installed releases of torch and triton, and what no interface shows of them."""

from __future__ import annotations


def torch_release() -> str:
    """The release of torch, such as 2.13.0."""
    import torch

    return torch.__version__.partition("+")[0]


def takes_slices() -> bool:
    """True if a choice may be a product per matrix of a batch: the lowerings of views fail within
    a choice before 2.13."""
    major, minor = torch_release().split(".")[:2]
    return (int(major), int(minor)) >= (2, 13)


def fuses_reshaped_epilogues() -> bool:
    """True if templates fuse pointwise ops on reshaped products, as of a linear layer on a batch of
    sequences: not in 2.10 and 2.11, which fuse before they merge loops."""
    from torch._inductor import config

    lossy = torch_release().startswith(("2.10.", "2.11."))
    return not (lossy and config.loop_ordering_after_fusion)


def installed_versions() -> dict[str, str]:
    """The releases of torch and triton, without build tags; empty for one not installed."""
    # Would take a quarter of the time of importing torch_diode.
    from torch_diode.hardware.versions import version_of

    # Not from torch's metadata: parsing its long description takes several milliseconds.
    return {"torch": torch_release(), "triton": version_of("triton")}


def has_triton() -> bool:
    """True if Triton is installed: beside a CPU build of torch it need not be."""
    return bool(installed_versions()["triton"])
