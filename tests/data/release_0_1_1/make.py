"""Writes the files of this folder with torch-diode 0.1.1's own classes; README.md says how."""

import json
from collections import OrderedDict
from pathlib import Path

import torch
from torch_diode.model.matmul_timing_model import DeepMatmulTimingModel, MatmulTimingModel
from torch_diode.types.matmul_dataset import Dataset
from torch_diode.types.matmul_types import (
    MMShape,
    OperationShapeSet,
    ShapeSet,
    Solution,
    TritonGEMMConfig,
)

HERE = Path(__file__).parent
HARDWARE = "NVIDIA H200"
BLOCKS = ((64, 64, 32), (128, 64, 32), (128, 128, 64), (16, 32, 64), (256, 128, 64))


def shape(m, n, k, b=1, dtype=torch.float16):
    return MMShape(
        B=b, M=m, N=n, K=k, M_dtype=dtype, K_dtype=dtype, out_dtype=dtype,
        out_size=(b, m, n), out_stride=(m * n, n, 1),
    )  # fmt: skip


def config(op, block_m, block_n, block_k):
    return TritonGEMMConfig(
        name=f"triton_{op}", grid=1, block_m=block_m, block_n=block_n, block_k=block_k,
        group_m=8, num_stages=3, num_warps=4,
    )  # fmt: skip


def dataset():
    """The last config fails on every problem, as the earlier collector recorded it: inf."""
    made = Dataset(hardware=OrderedDict())
    for op, b in (("mm", 1), ("addmm", 1), ("bmm", 8)):
        for size in (128, 320, 512, 1024):
            for number, blocks in enumerate(BLOCKS):
                milliseconds = size**3 * b / 1e10 * (1 + number) + 0.01
                time = float("inf") if number == len(BLOCKS) - 1 else milliseconds
                made.add_timing(
                    HARDWARE, op, shape(size, size // 2, size, b), config(op, *blocks), time
                )
    return made


def main():
    made = dataset()
    (HERE / "dataset.json").write_text(made.serialize())
    (HERE / "dataset.msgpack").write_bytes(made.to_msgpack())
    (HERE / "table.json").write_text(made.to_table().serialize())
    (HERE / "table.msgpack").write_bytes(made.to_table().to_msgpack())

    shapes, by_op = ShapeSet(), OperationShapeSet()
    for one, op in ((shape(128, 64, 256), "mm"), (shape(32, 48, 64, 32, torch.bfloat16), "bmm")):
        shapes.add_shape(one)
        by_op.add_shape(op, one)
    (HERE / "shape_set.json").write_text(shapes.serialize())
    (HERE / "operation_shape_set.json").write_text(by_op.serialize())
    (HERE / "shape_set.msgpack").write_bytes(shapes.to_msgpack())
    (HERE / "operation_shape_set.msgpack").write_bytes(by_op.to_msgpack())

    solutions = {
        op: Solution(config=[config(op, *blocks) for blocks in BLOCKS[:2]]) for op in ("mm", "bmm")
    }
    (HERE / "solution.json").write_text(str(solutions["mm"]))
    per_op = {op: json.loads(str(solution)) for op, solution in solutions.items()}
    (HERE / "solution_by_op.json").write_text(json.dumps(per_op))
    # Configs from a CSV file without the column `operation`, as its own script named them.
    (HERE / "solution_default.json").write_text(json.dumps({"default": per_op["mm"]}))

    torch.manual_seed(0)
    MatmulTimingModel(7, 5, hidden_dims=[8]).save(str(HERE / "base_model.pt"))
    DeepMatmulTimingModel(7, 5, hidden_dim=8, num_layers=2).save(str(HERE / "deep_model.pt"))


if __name__ == "__main__":
    main()
