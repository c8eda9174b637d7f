"""The script that learns a table of flex attention's configs from timings."""

import json

from tests.files.attention.test_logs import CONFIG, log
from tests.scripts import run_inside
from torch_diode.heuristics.attention_table import AttentionTable
from torch_diode.toolkit.datasets import convert

SMALL, LARGE = (64, -1, 64, 3, 4), (128, -1, 64, 3, 4)


def timed(batch, head_dim, small, large):
    problem = f"{batch},8,2048,{head_dim},2048,1,131072,64,1,6,1,torch.float16"
    return [
        f"{problem},{CONFIG.format(*config)},{time}"
        for config, time in ((SMALL, small), (LARGE, large))
    ]


def test_rows_have_the_configs_by_their_loss_and_not_those_that_never_ran(tmp_path):
    lines = [line for batch in range(1, 21) for line in timed(batch, 64, 2.0, 1.0)]
    lines += [line for batch in range(1, 21) for line in timed(batch, 256, 2.0, "inf")]
    source = tmp_path / "a100_flex_attention.txt"
    source.write_text(log(lines))
    convert([source], tmp_path / "t.parquet", collected="2024-08")
    output = tmp_path / "forward.json"
    ended = run_inside("workflows/learn_attention.py", tmp_path / "t.parquet", "--output", output)
    assert ended.returncode == 0, ended.stderr
    table = AttentionTable.load(output)
    assert table.hardware == "nvidia-a100"
    rows = {key[2]: [config.sizes for config in row] for key, row in table.rows.items()}
    assert rows == {64: [(128, 64, 3, 4), (64, 64, 3, 4)], 256: [(64, 64, 3, 4)]}
    written = json.loads(output.read_text())
    assert written["held_out"]["regret@1"] == 1.0
    assert written["provenance"]["collected"] == ["2024-08"]
    assert "| regret@1 | 1.0 |" in output.with_suffix(".md").read_text()
