"""predict() and rank_file() as Python functions; tests/cli has the commands."""

import json

import pytest
import torch

from torch_diode.toolkit.predict import find_hardware, predict, rank_file
from torch_diode.types.errors import FileFaultError, HardwareMismatchError
from torch_diode.types.problem import MMShape

PROBLEM = MMShape("mm", 512, 4096, 4096)


def test_shipped_names_the_packages_model(trained):
    shipped = predict(PROBLEM, "nvidia-h200", "shipped").to_dict()
    assert shipped == predict(PROBLEM, "nvidia-h200").to_dict()
    assert predict(PROBLEM, "nvidia-h200", str(trained)).source == f"model {trained}"
    with pytest.raises(HardwareMismatchError):
        predict(PROBLEM, "nvidia-a100", str(trained))


def test_a_file_is_ranked_and_notes_are_reported(tmp_path):
    unknown = MMShape("bmm", 64, 64, 64, B=100_000, dtype="float32")
    problems, output = tmp_path / "problems.jsonl", tmp_path / "ranked.jsonl"
    problems.write_text("\n".join(json.dumps(p.to_dict()) for p in (PROBLEM, unknown)))
    reports = []
    assert rank_file(problems, output, "nvidia-h200", top=2, progress=reports.append) == 2
    assert [len(json.loads(line)["ranked"]) for line in output.read_text().splitlines()] == [2, 2]
    assert [r.message.split(":")[0] for r in reports] == ["1 problems by the analytical heuristic"]
    problems.write_text("{")
    with pytest.raises(FileFaultError, match="line 1: not JSON"):
        rank_file(problems, output, "nvidia-h200", overwrite=True)
    assert len(output.read_text().splitlines()) == 2, "nothing is written"


def test_a_cpu_answers_with_its_threads():
    assert find_hardware(None, "cpu").threads == torch.get_num_threads()
    assert find_hardware("amd-zen5", threads=64).threads == 64
    assert find_hardware("nvidia-h200", threads=64).threads == 0
