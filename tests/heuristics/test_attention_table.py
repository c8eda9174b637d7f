import json

import pytest

from tests.samples import H200
from torch_diode.hardware import known
from torch_diode.heuristics.attention_table import AttentionTable, shipped_table
from torch_diode.heuristics.questions import AttentionBackward, AttentionForward
from torch_diode.types.candidate import KernelConfig
from torch_diode.types.errors import FileFaultError

PASTED = {"BLOCK_M": 64, "BLOCK_N": 32, "num_stages": 2, "num_warps": 4}
FIRST = KernelConfig((("block_m", 64), ("block_n", 32)), 2, 4)
SECOND = FIRST.changed(block_n=64)
ROW = {"kind": "forward", "dtype": "bfloat16", "head_dim": 128, "configs": [PASTED]}
HEAD = {"format": "torch-diode attention table", "version": 1}


def question(head_dim=128, dtype="bfloat16", default=(SECOND,), hardware=H200):
    return AttentionForward(hardware, default, head_dim, dtype, 0)


def written(folder, **changed):
    path = folder / "mine.json"
    path.write_text(json.dumps({**HEAD, "rows": [ROW], **changed}))
    return path


def test_a_table_has_configs_as_users_paste_them_and_the_form_it_writes(tmp_path):
    table = AttentionTable.load(written(tmp_path))
    assert table.name == "attention table mine"
    assert table(question()) == [FIRST]
    again = tmp_path / "again.json"
    again.write_text(json.dumps(table.to_dict()))
    assert AttentionTable.load(again).fingerprint() == table.fingerprint()
    other = AttentionTable({("forward", "bfloat16", 128): (SECOND,)})
    assert other.fingerprint() != table.fingerprint()


def test_a_row_serves_its_padded_head_dimensions_and_both_two_byte_dtypes():
    table = AttentionTable({("forward", "bfloat16", 128): (FIRST,)})
    assert table(question(96)) == table(question(128, "float16")) == [FIRST]
    assert table(question(64)) is None
    assert table(question(128, "float32")) is None
    blocks = tuple((f"block_{name}", 64) for name in ("m1", "n1", "m2", "n2"))
    backward = AttentionBackward(H200, (KernelConfig(blocks, 1, 4),), 128, "bfloat16", 0)
    assert table(backward) is None


def test_it_gives_one_config_or_for_max_autotune_a_few_and_only_to_its_chip():
    configs = tuple(FIRST.changed(num_warps=warps) for warps in (1, 2, 4, 8))
    table = AttentionTable({("forward", "bfloat16", 128): configs}, hardware=H200.name)
    assert table(question()) == [configs[0]]
    assert table(question(default=(FIRST, SECOND))) == list(configs[:3])
    assert table(question(hardware=known("nvidia-a100"))) is None


def test_the_chip_may_be_named_as_drivers_name_it(tmp_path):
    table = AttentionTable.load(written(tmp_path, hardware="NVIDIA GeForce RTX 4090"))
    assert table.hardware == "nvidia-geforce-rtx-4090"
    assert table(question()) is None


def test_a_shortlist_keeps_what_the_table_has_first_what_it_has_not_and_inductors_own():
    ranked = tuple(FIRST.changed(num_warps=warps) for warps in (1, 2, 4, 8))
    unknown = FIRST.changed(num_stages=1)
    table = AttentionTable({("forward", "bfloat16", 128): ranked})
    asked = question(default=(ranked[2], unknown, ranked[1], ranked[3]))
    assert table.shortlist(asked) == (ranked[0], ranked[1], unknown, ranked[3])
    assert table.shortlist(question()) is None
    assert table.shortlist(question(default=tuple(ranked) * 5)) is None


@pytest.mark.parametrize("chip", ["nvidia-a100", "nvidia-h100"])
def test_shipped_tables_have_a_row_per_precision_and_head_dimension(chip):
    table = shipped_table(known(chip))
    assert table is not None
    assert table.hardware == chip
    for dtype in ("bfloat16", "float32"):
        for head_dim in (16, 32, 64, 128, 256):
            assert table.row(question(head_dim, dtype))
    assert shipped_table(known("nvidia-b200")) is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"rows": 3},
        {"rows": [{**ROW, "kind": "sideways"}]},
        {"rows": [{**ROW, "configs": [{**PASTED, "BLOCK_K": 16}]}]},
        {"rows": [{**ROW, "configs": [{**PASTED, "num_warps": 0}]}]},
        {"rows": [{**ROW, "configs": [64]}]},
        {"hardware": 3},
        {"format": "torch-diode table"},
        {"version": 2},
    ],
)
def test_a_wrong_table_is_refused_in_a_sentence(tmp_path, wrong):
    with pytest.raises(FileFaultError, match=r"mine.json: .*got .*"):
        AttentionTable.load(written(tmp_path, **wrong))
