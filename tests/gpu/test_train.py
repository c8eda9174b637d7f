"""Networks trained in parallel processes on one GPU."""

import pytest
import torch

if not torch.cuda.is_available():
    pytest.skip("needs a CUDA device", allow_module_level=True)

from tests.gpu.programs import ROOT, torch_diode
from torch_diode.files.datasets import read_dataset, write_dataset

DATA = ROOT / "diode_datasets/matmul/nvidia-h200/train/sweep-7.parquet"


def test_teachers_and_student_train_on_the_gpu(tmp_path):
    data = read_dataset(DATA)
    write_dataset(data.take(data.problems.ids < 400), tmp_path / "some.parquet")
    ended = torch_diode(
        *("--seed", "3", "--device", "cuda", "train", "--dataset", "some.parquet"),
        *("--model", "m.pt", "--teachers", "2", "--num-epochs", "3", "--hidden-dim", "32"),
        cwd=tmp_path,
    )
    assert "3 networks, " in ended.stdout
    assert "side by side" in ended.stdout
    assert "stopped" not in ended.stdout, "each process could use the GPU"
    assert (tmp_path / "m.pt").exists()
    assert not [*tmp_path.glob("*.state"), *tmp_path.glob("*.teacher-*")]


def test_a_missing_gpu_is_an_error_without_a_traceback(tmp_path):
    arguments = ("--device", "cuda:77", "train", "--dataset", DATA, "--model", tmp_path / "m.pt")
    ended = torch_diode(*arguments, cwd=tmp_path, code=2)
    assert "cuda:77" in ended.stderr
    assert "Traceback" not in ended.stderr
