"""Whether processes can be forked that use the GPU: only from one that never has."""

from __future__ import annotations

import multiprocessing
import os

import torch

# Importing Inductor asks whether there is a GPU, and so do we. Asked of CUDA itself, that would
# leave every process forked afterwards without the use of it; asked of NVML, it does not.
os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")


def can_fork() -> bool:
    """Whether there is forking here at all, and a forked process could use the GPU."""
    return "fork" in multiprocessing.get_all_start_methods() and not torch.cuda.is_initialized()
