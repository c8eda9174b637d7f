import json

import pytest

from tests.files.autoheuristic_logs import CONFIG
from tests.files.refusals import content_refusal
from torch_diode.files.attention.logs import read_attention_log

HEAD = {
    "shared_memory": 166912,
    "device_capa": [8, 0],
    "name": "flex_attention",
    "numerical_features": [
        *("b", "h", "m", "n", "kv_seq_length", "q_stride_0", "q_stride_1", "q_stride_2"),
        *("q_stride_3", "subgraph_num_nodes", "subgraph_num_args_used"),
    ],
    "categorical_features": ["dtype"],
}
ROWS_FIRST = "32,8,2048,128,1024,2097152,128,1024,1,6,1,torch.float32"
HEADS_FIRST = "32,8,2048,128,1024,2097152,262144,128,1,8,3,torch.bfloat16"
SMALL, LARGE = CONFIG.format(64, -1, 16, 3, 4), CONFIG.format(128, -1, 128, 3, 4)


def log(lines, head=HEAD):
    names = [*head["numerical_features"], *head["categorical_features"], "choice", "feedback"]
    return "\n".join([json.dumps(head), ",".join(names), *lines, ""])


def test_a_log_is_the_dataset_of_its_timings(tmp_path):
    file = tmp_path / "a100_flex_attention.txt"
    file.write_text(
        log(
            [
                f"{ROWS_FIRST},{SMALL},0.38",
                f"{ROWS_FIRST},{LARGE},inf",
                f"{HEADS_FIRST},{SMALL},0.02",
                f"{ROWS_FIRST},{SMALL},0.4",
            ]
        )
    )
    timings = read_attention_log(file)
    assert [(timings.problem(row).key, timings.config(row).sizes) for row in range(3)] == [
        ("forward:32x8x2048x1024x128:float32:bmhd:score=6/1", (64, 16, 3, 4)),
        ("forward:32x8x2048x1024x128:float32:bmhd:score=6/1", (128, 128, 3, 4)),
        ("forward:32x8x2048x1024x128:bfloat16:bhmd:score=8/3", (64, 16, 3, 4)),
    ]
    assert timings.values("time_us")[[0, 2]].tolist() == [390.0, 20.0]
    assert timings.texts("status") == ["ok", "failed", "ok"]
    assert set(timings.texts("hardware")) == {"nvidia-a100"}
    assert timings.values("repeats").tolist() == [2, 1, 1]
    assert timings.provenance["source"] == ("PyTorch AutoHeuristic log a100_flex_attention.txt",)


def test_a_log_without_the_number_of_keys_is_of_as_many_as_queries(tmp_path):
    numbers = [name for name in HEAD["numerical_features"] if name != "kv_seq_length"]
    head = {**HEAD, "numerical_features": numbers, "device_capa": [9, 0]}
    file = tmp_path / "h100_flex_attention.txt"
    file.write_text(log([f"{ROWS_FIRST.replace('1024,', '', 1)},{SMALL},1"], head))
    timings = read_attention_log(file)
    assert (timings.problem(0).N, timings.problem(0).D) == (2048, 128)
    assert timings.texts("hardware") == ["nvidia-h100"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (log([f"{ROWS_FIRST},extern_mm,1"]), "got choice 'extern_mm'; expected type=triton_"),
        (log([f"{ROWS_FIRST},{SMALL},1"], {**HEAD, "name": "mm"}), "got a log of 'mm'"),
        (log([]), "got no timings"),
    ],
)
def test_other_logs_are_refused_in_a_sentence(tmp_path, content, said):
    file = tmp_path / "a100_flex_attention.txt"
    assert said in content_refusal(read_attention_log, file, content)
