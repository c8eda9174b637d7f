"""Timings of an invented CPU, by formula: libraries that win by size, layout and threads."""

import numpy as np

from torch_diode.types.dataset import Dataset

HARDWARE = "amd-zen5"
THREADS = (1, 2)
LABELS = (
    ("aten", 0, 0),
    ("onednn", 0, 0),
    ("onednn_packed", 0, 0),
    ("mkl_packed", 0, 0),
    ("cpp::gemm", 8, 16),
    ("cpp::gemm", 12, 16),
)


def cpu_timings(problems: int = 150, seed: int = 0) -> Dataset:
    """A dataset of so many problems, each with both numbers of threads."""
    rng = np.random.default_rng(seed)
    columns: dict[str, list[object]] = {}
    for _ in range(problems):
        m, n, k = np.exp(rng.normal((5, 6, 6), (2, 1.2, 1.2))).astype(int) + 1
        op = str(rng.choice(["mm", "addmm"]))
        layout = str(rng.choice(["nn", "nt", "tn"]))
        for threads in THREADS:
            for number, (template, block_m, block_n) in enumerate(LABELS):
                if number > 1 and layout == "tn":
                    continue
                time = _time(m, n, k, layout, threads, template, block_m)
                row = {
                    "hardware": HARDWARE, "threads": threads, "op": op, "M": int(m), "N": int(n),
                    "K": int(k), "dtype": "float32", "transpose_a": layout[0] == "t",
                    "transpose_b": layout[1] == "t", "bias": "vector" if op == "addmm" else "none",
                    "template": template, "block_m": block_m, "block_n": block_n,
                    "block_k": 1 if block_m else 0, "time_us": time * np.exp(rng.normal(0, 0.01)),
                    "spread": 0.01, "repeats": 20, "torch": "2.13.0",
                }  # fmt: skip
                for name, value in row.items():
                    columns.setdefault(name, []).append(value)
    return Dataset.from_columns(columns)


def _time(m: int, n: int, k: int, layout: str, threads: int, template: str, block_m: int) -> float:
    """ATen at half the rate, packed weights without the reading of B, a template for few rows."""
    rate = {"aten": 120e3, "mkl_packed": 125e3, "cpp::gemm": 200e3}.get(template, 260e3)
    moved = 4 * (m * k + n * k + m * n)
    fixed = {"aten": 2.0, "onednn": 6.0, "onednn_packed": 4.0}.get(template, 1.5)
    if template == "onednn" and layout == "tn":
        fixed += 4 * m * k / 8e3
    waste = np.ceil(m / block_m) * block_m / m if block_m else 1.0
    return float(fixed + (2 * m * n * k / rate * waste + moved / 40e3) / threads)
