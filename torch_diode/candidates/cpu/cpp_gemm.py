"""Inductor's C++ GEMM template: which problems it can pay for, and with which micro-kernels.

The template packs a constant B into panels as wide as its micro-kernel. Inductor picks the
micro-kernel by a fixed rule from a list of three; most of those here are not in its list.
"""

from __future__ import annotations

from torch_diode.candidates.cpu.libraries import packed_runs
from torch_diode.types.candidate import CppGEMMConfig
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import MMShape

MOST_ROWS = 64
"""Beyond, it gains little on oneDNN with a packed weight (Zen 5: 0.5 to 0.9 of its time up to 32
rows, 0.91 to 0.97 at 64, 0.98 to 1.01 at 128), and a kernel takes a second to compile."""

# By instruction set, best first; with AVX-512 those that won on a Zen 5, at 1 to 64 rows. The
# micro-kernel holds block_m x block_n sums in vector registers, so block_n is a multiple of the
# vector's length: 16 floats with AVX-512, 8 with AVX2. Beyond twelve vectors of sums the compiled
# kernel is two to three times slower, whatever the registers.
_BLOCKINGS = {
    "avx512f": (CppGEMMConfig(6, 32), CppGEMMConfig(2, 48)),
    "avx2": tuple(CppGEMMConfig(*block) for block in ((6, 16), (4, 24), (4, 16), (8, 8))),
}


def cpp_configs(problem: MMShape, hardware: Hardware) -> tuple[CppGEMMConfig, ...]:
    """The micro-kernels worth trying on a problem; none where the template cannot pay.

    Only float32: for other dtypes it is slower than oneDNN without matrix instructions, and with
    them it is theirs that oneDNN uses too.
    """
    if problem.dtype != "float32" or problem.M > MOST_ROWS or not packed_runs(problem, hardware):
        return ()
    return _BLOCKINGS.get(vector_set(hardware), ())


def vector_set(hardware: Hardware) -> str:
    """The instruction set whose micro-kernels are candidates; empty where none are known."""
    return next((name for name in _BLOCKINGS if name in hardware.instruction_sets), "")
