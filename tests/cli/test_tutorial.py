"""The tutorial's lines that need no GPU, as written, in order, in a directory with the data its
first and third line would have collected."""

import json
import shlex

from tests.cli.program import inside
from tests.conftest import SHIPPED_TIMINGS as SHIPPED
from torch_diode.files.datasets import read_dataset, write_dataset

TRAIN = (
    "--seed 42 train --data-dir . --model tutorial_model.pt --model-type deep --batch-size 32 "
    "--num-epochs 50 --learning-rate 0.001 --file-extensions msgpack"
)
VALIDATE = (
    "--seed 42 validate-model --model tutorial_model.pt --dataset tutorial_validation.msgpack "
    "--batch-size 32 --top-n-worst 5"
)
AGAINST_MAX_AUTOTUNE = (
    "--seed 42 validate-max-autotune --model tutorial_model.pt --dataset "
    "tutorial_validation.msgpack --max-autotune-solution tutorial_max_autotune.json "
    "--batch-size 32"
)


def test_the_tutorial_from_its_collected_data_on(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    whole = read_dataset(SHIPPED)
    mm = whole.take((whole.problems.ids < 300) & (whole.codes("op")[0] == 0))
    write_dataset(mm.take(mm.problems.ids < 10), tmp_path / "tutorial_dataset.msgpack")
    ended = inside(*shlex.split(TRAIN))
    assert ended.code == 0, ended.err
    apart = mm.take((mm.problems.ids >= 100) & (mm.problems.ids < 105))
    write_dataset(apart, tmp_path / "tutorial_validation.msgpack")
    ended = inside(*shlex.split(VALIDATE))
    assert ended.code == 0, ended.err
    assert "Scored on all 5 problems" in ended.out
    assert "5 worst predictions" in ended.out
    ended = inside(*shlex.split(AGAINST_MAX_AUTOTUNE))
    assert ended.code == 0, ended.err
    assert (tmp_path / "tutorial_max_autotune.json").is_file()
    found = json.loads((tmp_path / "model_performance_analysis_by_op.json").read_text())
    assert found["all"]["problems"] == 5
