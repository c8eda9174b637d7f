"""Questions refuse answers that Inductor cannot compile."""

from typing import Any

import pytest

from tests.samples import H200
from torch_diode.heuristics.questions import (
    QUESTIONS,
    AttentionBackward,
    AttentionForward,
    Convolution,
    CooperativeReduction,
    Fusion,
    FusionPriority,
    Node,
    PersistentReduction,
    Question,
    ReductionSplit,
)
from torch_diode.types.candidate import KernelConfig
from torch_diode.types.errors import InvalidValueError

NODE = Node("reduction", ("sum",), 64, 512, ("float32",))
SMALL = KernelConfig((("BLOCK_M", 64), ("BLOCK_N", 32)), 2, 4)
LARGE = SMALL.changed(BLOCK_M=128, num_warps=8)
SPLIT = ReductionSplit(H200, 1, 64, 512, True)
CONFIGS = Convolution(H200, (SMALL, LARGE), 100, 64, 32)
PERSISTENT = PersistentReduction(H200, False, 64, 1 << 16, False, "inner", ("float32",), False)
FUSION = Fusion(H200, True, NODE, NODE, 4096, True)
FORWARD = AttentionForward(H200, (SMALL, LARGE), 128, "bfloat16", 0)
_BLOCKS = (("block_m1", 32), ("block_n1", 64), ("block_m2", 64), ("block_n2", 32))
BACKWARD = AttentionBackward(H200, (KernelConfig(_BLOCKS, 1, 4),), 128, "bfloat16", 0)


def test_a_config_changes_by_the_names_of_its_values():
    assert LARGE.blocks == (("BLOCK_M", 128), ("BLOCK_N", 32))
    assert (LARGE["BLOCK_M"], LARGE.num_stages, LARGE.num_warps) == (128, 2, 8)
    assert SMALL["BLOCK_M"] == 64
    with pytest.raises(InvalidValueError, match=r"got BLOCK_K; expected .* BLOCK_M, BLOCK_N"):
        SMALL.changed(BLOCK_K=64)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (SPLIT, 0),
        (SPLIT, 513),
        (SPLIT, True),
        (SPLIT, 2.0),
        (PERSISTENT, True),
        (PERSISTENT, 0),
        (FUSION, "yes"),
        (CooperativeReduction(H200, False, 1, 512), 1),
        (FusionPriority(H200, 0, NODE, NODE), 0.5),
        (CONFIGS, []),
        (CONFIGS, SMALL),
        (CONFIGS, True),
        (CONFIGS, [SMALL, "64x32"]),
        (CONFIGS, [SMALL.changed(BLOCK_M=96)]),
        (CONFIGS, [SMALL.changed(BLOCK_M=8)]),
        (CONFIGS, [SMALL.changed(num_warps=3)]),
        (CONFIGS, [SMALL.changed(num_stages=0)]),
        (FORWARD, [SMALL.changed(BLOCK_N=64)]),
        (FORWARD, [SMALL.changed(BLOCK_M=256)]),
        (FORWARD, [SMALL.changed(num_stages=3)]),
        (BACKWARD, [BACKWARD.default[0].changed(block_n1=16)]),
        (CONFIGS, [KernelConfig((("BLOCK_M", 64),), 2, 4)]),
    ],
)
def test_answers_that_cannot_be_compiled_are_refused(question: Question, answer: Any):
    with pytest.raises(InvalidValueError, match=f"{question.asks}: got .*; expected "):
        question.checked(answer)


def test_the_others_are_kept_and_each_config_once():
    assert SPLIT.checked(512) == 512
    assert PERSISTENT.checked(False) is False
    assert CONFIGS.checked(iter([LARGE, SMALL, LARGE])) == (LARGE, SMALL)
    assert CONFIGS.checked([SMALL.changed(BLOCK_N=16)])[0]["BLOCK_N"] == 16


def test_questions_are_plain_values_and_print_in_a_line():
    assert str(SPLIT) == "split outputs=64 length=512 inner=True"
    assert "first=reduction(sum) 64x512" in str(FUSION)
    assert hash(FUSION) == hash(Fusion(H200, True, NODE, NODE, 4096, True))
    assert len({(q.decision, q.asks) for q in QUESTIONS}) == len(QUESTIONS)
