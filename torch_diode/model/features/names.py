"""Names of the features, in the order of their columns, and the version of their definition.

Raise `FEATURES_VERSION` with every change to a number that `extractor`, `roofline` or `vendor`
compute, and `CPU_FEATURES_VERSION` with one to those of `cpu`, `kernel_times` and, for CPUs,
`roofline`: a model trained on other features is refused when it is loaded.
"""

from __future__ import annotations

from torch_diode.types.candidate import ATEN, ONEDNN, ONEDNN_F32, PACKED
from torch_diode.types.problem import BIASES, OPS

FEATURES_VERSION = 3

TEMPLATES = ("triton::mm", "triton::bmm", "triton::mm_persistent_tma")
"""Templates with a feature of their own; a model knows nothing about any other."""
PRECISIONS = ("bfloat16", "float16", "float32", "tf32")
"""Precisions of a product; any other has the code `len(PRECISIONS)`."""

DIVISORS = (8, 16, 64, 128)
"""Powers of two that M, N and K are tested for."""
LIBRARY_TILES = (
    *((16, 64), (64, 16), (32, 32), (32, 64), (64, 32), (64, 64), (64, 128), (128, 64)),
    *((128, 128), (64, 256), (256, 64), (128, 192), (192, 128), (128, 256), (256, 128)),
)
"""Output tiles (M by N) of the vendor library's kernels."""
SPLIT_TILES = ((64, 64), (128, 128), (128, 256), (256, 128))
SPLITS = (2, 4, 8, 16)
"""Numbers of parts of K that the library may split these tiles into."""
SMALL_SIZES = (1, 8, 16, 32, 64)
ALIGNMENTS = (4, 8, 16, 32, 128)

PROBLEM_NAMES = (
    *(f"log2_{size}" for size in ("B", "M", "N", "K", "flops", "bytes", "intensity", "outputs")),
    "log_roofline_us",
    "log_compute_over_memory",
    *(f"op_{op}" for op in OPS),
    *(f"precision_{name}" for name in PRECISIONS),
    "transpose_a",
    "transpose_b",
    *(f"bias_{bias}" for bias in BIASES[1:]),
    *(f"{size}_by_{divisor}" for size in "MNK" for divisor in DIVISORS),
    *(f"log2_low_bit_{size}" for size in "MNK"),
    *(f"aligned_{matrix}" for matrix in "abc"),
    *(f"log2_piece_{matrix}" for matrix in "abc"),
    *(f"log2_row_bytes_{matrix}" for matrix in "ab"),
)
CONFIG_NAMES = (
    *(f"template_{name.split('::')[1]}" for name in TEMPLATES),
    *(f"log2_block_{size}" for size in "mnk"),
    "num_stages",
    "log2_num_warps",
    "log2_group_m",
    "log2_split_k",
    "direct",
    "shared_share",
    "registers_share",
    "log2_resident",
    "log2_outputs_a_thread",
    "log2_load_bytes_a_thread",
)
JOINT_NAMES = (
    *("log2_tiles_m", "log2_tiles_n", "log2_tiles", "log2_k_steps", "log2_tiles_a_unit"),
    *("unit_use", "log2_waves", "wave_use", "fill_m", "fill_n", "fill_k", "even_k"),
    *("log2_warps_a_unit", "log2_bytes_in_flight", "steps_a_stage"),
    *("log_compute", "log_l2", "log_memory", "log_latency", "log_estimate"),
    "log2_loads_a_thread",
)
FEATURE_NAMES = (*PROBLEM_NAMES, *CONFIG_NAMES, *JOINT_NAMES)
VENDOR_NAMES = (
    *(f"{m}x{n}_{what}" for what in ("time", "use", "tiles", "fill") for m, n in LIBRARY_TILES),
    *(f"{m}x{n}_split_{split}" for m, n in SPLIT_TILES for split in SPLITS),
    *(f"{size}_at_most_{small}" for size in "MNK" for small in SMALL_SIZES),
    *(f"{matrix}_aligned_{size}" for matrix in "abc" for size in ALIGNMENTS),
    *("log2_M_over_N", "log2_larger", "log2_smaller"),
)
SPLIT_NAMES = (
    *(f"part_{name}" for name in VENDOR_NAMES),
    *("log2_splits", "log2_part_K", "part_steps", "log_part_roofline", "log_sum"),
)

CPU_FEATURES_VERSION = 1
CPU_PRECISIONS = PRECISIONS[:3]
HEIGHTS = (2, 4, 6, 8, 12, 14, 16, 24, 32, 48)
WIDTHS = (8, 16, 32, 48, 64, 128)
"""Outputs along M and N that micro-kernels hold in registers; a matrix that is no multiple of them
wastes some."""
TILES = ((6, 64), (8, 16), (12, 48), (24, 64), (48, 128), (192, 384))
"""Blocks of outputs that are shared out among the threads."""
FEW_ROWS = (1, 2, 4, 8, 16, 32)
CACHES = ("l1", "l2", "l3")
ELEMENTS = (4, 8, 16, 32, 64)
"""Powers of two that rows are tested for, in elements: vectors and cache lines."""
ESTIMATED = (ATEN, ONEDNN, ONEDNN_F32, *PACKED)
"""Libraries whose analytical times are features."""
ESTIMATED_BLOCK = (8, 16)
"""Register blocking of the C++ template whose analytical time is a feature."""
ALIASING_BYTES = (1024, 4096)
"""Rows of a multiple of these bytes fall into few sets of the caches."""
CPU_NAMES = (
    *(f"log2_{size}" for size in ("B", "M", "N", "K", "flops", "bytes", "intensity", "outputs")),
    *("log_roofline_us", "log_compute_over_memory", "log2_threads", "log2_flops_a_thread"),
    *(f"op_{op}" for op in OPS),
    *(f"precision_{name}" for name in CPU_PRECISIONS),
    *("transpose_a", "transpose_b"),
    *(f"bias_{bias}" for bias in BIASES[1:]),
    *("log2_M_over_N", "log2_K_over_M", "log2_K_over_N", "log2_rows_a_thread"),
    *(f"log2_{part}_over_{cache}" for part in ("a", "b", "c", "all") for cache in CACHES),
    *(f"log2_row_over_{cache}" for cache in CACHES[:2]),
    *(f"row_{matrix}_by_{count}" for matrix in "abc" for count in ELEMENTS),
    *(f"row_{matrix}_aliases_{size}" for matrix in "abc" for size in ALIASING_BYTES),
    *(f"log2_low_bit_{size}" for size in "MNK"),
    *(f"fill_{height}_rows" for height in HEIGHTS),
    *(f"fill_{width}_columns" for width in WIDTHS),
    *(f"share_{m}x{n}" for m, n in TILES),
    *(f"{size}_at_most_{few}" for size in "MNK" for few in FEW_ROWS),
    *(f"log_{name}" for name in ESTIMATED),
    "log_micro_kernel",
)
