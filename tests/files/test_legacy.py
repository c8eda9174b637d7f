"""Files of the first version, as they were written then, under `golden/`."""

import copy
import json
from pathlib import Path

import pytest

from tests.files.refusals import content_refusal
from torch_diode.files.datasets import read_dataset, write_dataset
from torch_diode.files.json import read_json
from torch_diode.files.shape_sets import read_shapes
from torch_diode.files.tables import read_table, write_table
from torch_diode.types.problem import MMShape
from torch_diode.types.solution import Solution

GOLDEN = Path(__file__).with_name("golden")


def test_a_dataset_of_version_1_reads_as_what_it_means_now(tmp_path):
    dataset = read_dataset(GOLDEN / "dataset_version_1.json")
    rows = [(t.hardware, t.problem.key, str(t.candidate), t.time_us) for t in dataset]
    assert rows == [
        ("nvidia-h100", "mm:1024x512x256:float16:nn", "triton::mm 64x64x32 g8 s3 w4", 12.5),
        ("nvidia-h100", "mm:1024x512x256:float16:nn", "triton::mm 128x128x32 g8 s4 w8", 10.25),
        ("nvidia-h100", "mm:64x64x64:float32:nn:tf32", "triton::mm 16x16x16 g8 s2 w2", 4.0),
        (
            "nvidia-h100",
            "bmm:8x128x128x64:bfloat16:nn:out=float32",
            "triton::bmm 32x32x32 g4 s2 w4",
            7.75,
        ),
    ]
    assert {t.method for t in dataset} == {"feedback"}
    assert dataset.provenance == {"read_from": ("version 1",)}
    write_dataset(dataset, tmp_path / "now.json")
    assert read_dataset(tmp_path / "now.json") == dataset


def test_a_table_of_version_1_reads_and_keeps_its_order(tmp_path):
    table = read_table(GOLDEN / "table_version_1.json")
    problem = MMShape("mm", 1024, 512, 256, dtype="float16")
    entries = table.lookup("nvidia-h100", problem)
    assert [str(entry.candidate) for entry in entries] == [
        "triton::mm 128x128x32 g8 s4 w8",
        "triton::mm 64x64x32 g8 s3 w4",
    ]
    write_table(table, tmp_path / "now.json")
    assert read_table(tmp_path / "now.json") == table


def test_a_shape_set_of_version_1_reads():
    shapes = read_shapes(GOLDEN / "shapes_version_1.json")
    assert [problem.key for problem in shapes.problems] == [
        "mm:1024x512x256:float16:nn",
        "bmm:8x128x128x64:bfloat16:nn:out=float32",
    ]
    assert [shape.count for shape in shapes] == [2, 1]


def test_a_solution_with_what_old_files_also_stored_reads():
    solution = read_json(GOLDEN / "solution_version_1.json", Solution.from_dict)
    (config,) = solution.configs
    blocks = {"block_m": 64, "block_n": 64, "block_k": 32}
    assert dict(config.fields) == {**blocks, "group_m": 8, "num_stages": 3, "num_warps": 4}


def solution_of(data):
    operation = data["hardware"]["NVIDIA H100 80GB HBM3"]["operation"]["mm"]
    return next(iter(operation["solution"].values()))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d.update(hardware=[]), "hardware: got list; expected an object"),
        (
            lambda d: d["hardware"].update(
                {"!!!": {"operation": {"mm": {"solution": {"{}": {}}}}}}
            ),
            "hardware name",
        ),
        (
            lambda d: solution_of(d).update(timed_configs={}),
            "timed_configs: got dict; expected a list",
        ),
        (lambda d: solution_of(d)["timed_configs"].append(5), "got 5; expected config and time"),
        (lambda d: solution_of(d)["timed_configs"][0].update(time=-1), "version 1.time: got -1"),
        (lambda d: solution_of(d)["timed_configs"][0].update(config="[" * 10_000), "expected JSON"),
        (lambda d: solution_of(d)["timed_configs"][0].update(config="{}"), "no field 'block_m'"),
    ],
)
def test_a_bad_file_of_version_1_is_refused_in_one_line(tmp_path, change, said):
    data = copy.deepcopy(json.loads((GOLDEN / "dataset_version_1.json").read_text()))
    change(data)
    assert said in content_refusal(read_dataset, tmp_path / "old.json", json.dumps(data))
