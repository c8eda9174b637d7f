"""The first run of a C++ kernel, in a process of its own.

A machine may report instructions that its kernels die of. So no graph gets a kernel that has not
given a right result here before; outcomes are kept, so that this happens once.
"""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import torch
from torch._inductor import cpu_vec_isa
from torch._inductor.runtime.cache_dir_utils import cache_dir

from torch_diode.files.atomic import replacing
from torch_diode.files.user_data import user_data
from torch_diode.hardware import detect
from torch_diode.integration.hooks import torch_compat
from torch_diode.types.candidate import CppGEMMConfig
from torch_diode.types.problem import MMShape

ATTENTION = "attention"
"""Names the kernel of attention."""
PROBLEM = MMShape("addmm", M=37, N=200, K=301, dtype="float32", transpose_b=True)
"""Sizes that leave a remainder to every block."""
TIMEOUT = 300
WRONG = 3
"""Exit code of a trial that gives a wrong result."""
_CODE = "import sys; from torch_diode.integration.cpu import trial; trial.main(*sys.argv[1:])"

_failed: list[str] = []
"""Faults that may be gone in the next process, such as a full disk."""


def fault_of(kernel: CppGEMMConfig | str) -> str:
    """The fault of a micro-kernel, or of `ATTENTION`, on this machine; empty if it runs. Takes
    seconds, once."""
    outcome = _folder() / str(kernel)
    if not outcome.is_file():
        fault = _try(kernel)
        if known := known_fault():
            return known
        with replacing(outcome) as path:
            path.write_text(fault and f"{kernel} {fault}")
    return outcome.read_text()


def known_fault() -> str:
    """The first fault found on this machine: where one micro-kernel dies, none is trusted."""
    if _failed:
        return _failed[0]
    with suppress(FileNotFoundError), os.scandir(_folder()) as outcomes:
        # Only a fault has text, and reading files takes as long as the rest of a decision.
        faults = [each.path for each in outcomes if each.name[0] != "." and each.stat().st_size]
        if faults:
            return Path(min(faults)).read_text()
    return ""


def main(*arguments: str) -> None:
    """Compile and run a kernel; called in the process of its own."""
    is_right = _attends if arguments == (ATTENTION,) else _multiplies
    sys.exit(0 if is_right(*arguments) else WRONG)


def _multiplies(*blocks: str) -> bool:
    """Whether a micro-kernel with these blocks gives the right product."""
    from torch_diode.integration.cpu.build import build

    kernel = build(PROBLEM, CppGEMMConfig(*map(int, blocks)))
    generator = torch.Generator().manual_seed(0)
    a = torch.randn(PROBLEM.M, PROBLEM.K, generator=generator)
    b = torch.randn(PROBLEM.K, PROBLEM.N, generator=generator)
    bias = torch.randn(PROBLEM.N, generator=generator)
    expected = (bias + a.double() @ b.double()).float()
    return torch.allclose(kernel.run(a, kernel.pack(b), bias), expected, rtol=1e-4, atol=1e-3)


def _attends(_: str) -> bool:
    """Whether the kernel of attention gives the right result, with a mask, across its blocks."""
    from torch_diode.integration.cpu.build_attention import build_attention

    generator = torch.Generator().manual_seed(0)
    sizes = ((1, 2, 37, 19), (1, 2, 301, 19), (1, 2, 301, 19), (37, 301))
    query, key, value, mask = (torch.randn(size, generator=generator) for size in sizes)
    result = build_attention(query, key, value, mask)()
    query, key, value, mask = (operand.double() for operand in (query, key, value, mask))
    expected = ((query @ key.mT / 19**0.5 + mask).softmax(-1) @ value).float()
    return torch.allclose(result, expected, rtol=1e-4, atol=1e-4)


def _try(kernel: CppGEMMConfig | str) -> str:
    arguments: list[object] = [kernel]
    if isinstance(kernel, CppGEMMConfig):
        arguments = [kernel.block_m, kernel.block_n, kernel.block_k]
    try:
        ended = subprocess.run(  # noqa: S603 our own code
            [sys.executable, "-c", _CODE, *map(str, arguments)],
            env={**os.environ, "TORCH_DIODE": "0"},
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        _failed.append(f"{kernel} did not end within {TIMEOUT} seconds")
        return ""
    if ended.returncode < 0:
        return f"died of {signal.Signals(-ended.returncode).name}"
    if ended.returncode == WRONG:
        return "gave a wrong result"
    if ended.returncode:
        last = (ended.stderr.strip().splitlines() or [""])[-1]
        _failed.append(f"{kernel} could not be tried: {last:.200}")
    return ""


@functools.cache
def _folder() -> Path:
    """By CPU, instruction set and release of torch, in the user's data directory or, where that
    cannot be written, beside Inductor's compiled kernels."""
    isa = type(cpu_vec_isa.pick_vec_isa()).__name__
    name = f"{detect('cpu').name}-{isa}-{torch_compat.torch_release()}"
    kept = user_data() / "first_runs" / name
    with suppress(OSError):
        kept.mkdir(parents=True, exist_ok=True)
    return kept if os.access(kept, os.W_OK) else Path(cache_dir()) / "torch_diode" / name
