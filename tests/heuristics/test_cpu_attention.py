"""The rule for a CPU's attention: where it answers, and what its file may hold."""

from dataclasses import replace

import pytest

from torch_diode.files.json import write_json
from torch_diode.heuristics.cpu_attention import AttentionRule, shipped_rule
from torch_diode.heuristics.questions import CpuAttention
from torch_diode.types.errors import FileFaultError
from torch_diode.types.hardware import Hardware

ZEN5 = Hardware("amd-zen5", "cpu", "x86_64", threads=2)
BERT = CpuAttention(ZEN5, "aten", 1, 12, 128, 128, 64, causal=False, mask="none")
FILE = {
    "format": "torch-diode attention rule",
    "version": 1,
    "provenance": {"torch": ["2.13.0"]},
    "hardware": "amd-zen5",
    "threads": [1, 2],
    "within": {"queries": [4, 2048], "keys": [1, 4096], "head_dim": [16, 256]},
}


def test_the_shipped_rule_takes_the_kernel_for_bert_on_a_zen_5():
    rule = shipped_rule(ZEN5)
    assert rule is not None
    assert rule.answer(BERT) == "cpp::attention"
    assert shipped_rule(Hardware("amd-zen3", "cpu", "x86_64", threads=2)) is None


@pytest.mark.parametrize(
    "question",
    [
        replace(BERT, hardware=replace(ZEN5, threads=64)),
        replace(BERT, hardware=replace(ZEN5, name="amd-zen4")),
        replace(BERT, queries=3),
        replace(BERT, keys=5000),
    ],
    ids=["threads", "chip", "queries", "keys"],
)
def test_it_abstains_beyond_what_was_measured(question, tmp_path):
    write_json(tmp_path / "rule.json", FILE, 1)
    rule = AttentionRule.load(tmp_path / "rule.json")
    assert rule.answer(BERT) == "cpp::attention"
    assert rule.answer(question) is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "torch-diode table"}, "expected 'torch-diode attention rule'"),
        ({"version": 2}, "reads up to 1"),
        ({"threads": 2}, "threads: got int; expected a list"),
        ({"within": {"queries": [1, 2]}}, "within"),
        ({"within": {**FILE["within"], "keys": [1]}}, "expected the least and the most"),
    ],
)
def test_a_file_that_is_no_rule_is_one_clear_sentence(change, message, tmp_path):
    write_json(tmp_path / "rule.json", {**FILE, **change}, 1)
    with pytest.raises(FileFaultError, match=message):
        AttentionRule.load(tmp_path / "rule.json")


def test_the_fingerprint_follows_the_limits(tmp_path):
    write_json(tmp_path / "one.json", FILE, 1)
    write_json(tmp_path / "two.json", {**FILE, "within": {**FILE["within"], "keys": [1, 99]}}, 1)
    one, two = (AttentionRule.load(tmp_path / f"{name}.json") for name in ("one", "two"))
    assert one.fingerprint() != two.fingerprint()
    assert one.is_of("2.13.1")
    assert not one.is_of("2.12.1")
