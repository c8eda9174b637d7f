"""Questions refuse answers that Inductor cannot compile."""

from dataclasses import replace
from typing import Any

import pytest

from tests.samples import H200
from torch_diode.hardware import known
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


def attention(*sizes, chip="nvidia-geforce-rtx-3090", head_dim=128, **more):
    config = KernelConfig((("block_m", sizes[0]), ("block_n", sizes[1])), *sizes[2:])
    return AttentionForward(known(chip), (config,), head_dim, "bfloat16", 4096, **more), config


def test_what_fits_a_chip_depends_on_the_head_dimension_of_values_too():
    for value_dim, fits in ((0, False), (128, True)):
        question, config = attention(64, 64, 3, 4, chip="nvidia-a100", head_dim=192)
        assert question.fits(config) is False
        question = replace(question, value_dim=value_dim)
        assert question.fits(config) is fits
        assert (question.fitting((config,)) == (config,)) is fits


def test_tensors_that_scores_read_count_in_full_and_those_of_a_mask_by_row():
    question, config = attention(128, 64, 3, 8)
    assert question.fits(config) is True
    biased = replace(question, score_tensors=(2,))
    assert biased.fits(config) is False
    (given,) = biased.fitting((config,))
    assert biased.fits(given) is True
    # A mask's tensor is read by row as a rule; where it is not, this does not fit.
    masked = replace(question, mask_tensors=(4,))
    assert masked.fits(config) is None
    assert masked.fitting((config,)) == (config,)


def test_a_config_that_was_never_compiled_or_a_chip_without_measurements_is_unknown():
    question, config = attention(128, 64, 3, 8)
    assert question.fits(config.changed(num_warps=16)) is None
    other, config = attention(128, 128, 5, 4, chip="nvidia-t4")
    assert other.fits(config) is None
    assert other.fitting((config,)) == (config,)
    assert other.fitting_configs == ()


def test_an_answer_of_a_larger_config_that_fits_is_taken():
    question, config = attention(64, 64, 3, 4, chip="nvidia-h100")
    larger = config.changed(block_m=128)
    assert question.fits(larger)
    assert question.checked([larger]) == (larger,)
    with pytest.raises(InvalidValueError, match="within those of one config"):
        question.checked([larger.changed(block_n=256)])


def test_questions_are_plain_values_and_print_in_a_line():
    assert str(SPLIT) == "split outputs=64 length=512 inner=True"
    assert "first=reduction(sum) 64x512" in str(FUSION)
    assert hash(FUSION) == hash(Fusion(H200, True, NODE, NODE, 4096, True))
    assert len({(q.decision, q.asks) for q in QUESTIONS}) == len(QUESTIONS)
