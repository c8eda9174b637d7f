"""Conversion of Inductor's inputs to problems."""

import functools

import pytest
import torch

from tests.integration.cases import MAX_AUTOTUNE, B, K, M, N
from tests.integration.forced import abstaining
from torch_diode.integration import registration
from torch_diode.integration.capture.fake_gpu import Dynamic, Input, lower
from torch_diode.integration.deciding.problem import UnsupportedProblemError, is_transposed
from torch_diode.types.problem import MMShape

PROBLEMS: list[MMShape] = []


@pytest.fixture(autouse=True)
def watch(fake_h200, monkeypatch):
    """Record every problem."""
    from torch_diode.integration.deciding import decider

    real = decider.problem_of

    def recording(op, inputs):
        PROBLEMS.append(real(op, inputs))
        return PROBLEMS[-1]

    PROBLEMS.clear()
    monkeypatch.setattr(decider, "problem_of", recording)
    with registration.using(abstaining()):
        yield


def key_of(fn: object, *operands: Input) -> str:
    lower(fn, operands, generate=False)  # type: ignore[arg-type]
    (problem,) = PROBLEMS
    return problem.key


ROWS = Dynamic("s0", 1000)
F32 = torch.float32
A, X = Input((M, K)), Input((K, N))
BATCH_A, BATCH_X = Input((B, M, K)), Input((B, K, N))
F16_A, F16_X = Input((M, K), torch.float16), Input((K, N), torch.float16, (1, K))
F32_A, F32_X = Input((M, K), F32), Input((K, N), F32)
CASES = [
    ("mm:384x512x640:bfloat16:nn", torch.mm, A, X),
    ("mm:384x512x640:float16:nt", torch.mm, F16_A, F16_X),
    ("mm:384x512x640:bfloat16:tn", torch.mm, Input((M, K), strides=(1, M)), X),
    ("mm:384x512x640:bfloat16:nn", torch.mm, Input((M, K), strides=(2 * K, 1)), X),
    ("mm:1000x512x640:bfloat16:nn", torch.mm, Input((ROWS, K)), X),
    ("mm:384x512x640:float32:nn", torch.mm, F32_A, F32_X),
    ("addmm:384x512x640:bfloat16:nn", torch.addmm, Input((N,)), A, X),
    ("addmm:384x512x640:bfloat16:nn:bias=matrix", torch.addmm, Input((M, N)), A, X),
    ("addmm:384x512x640:bfloat16:nn", torch.addmm, Input((M, N), strides=(0, 1)), A, X),
    ("bmm:4x384x512x640:bfloat16:nn", torch.bmm, BATCH_A, BATCH_X),
    ("bmm:4x1000x512x640:bfloat16:nn", torch.bmm, Input((B, ROWS, K)), BATCH_X),
    ("bmm:4x384x512x640:bfloat16:nn", torch.bmm, Input((B, M, K), strides=(0, K, 1)), BATCH_X),
    ("baddbmm:4x384x512x640:bfloat16:nn", torch.baddbmm, Input((B, M, N)), BATCH_A, BATCH_X),
    (
        "baddbmm:4x384x512x640:bfloat16:nn:bias=vector",
        torch.baddbmm,
        Input((B, 1, N)),
        BATCH_A,
        BATCH_X,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_the_problem_is_that_of_the_inputs(case):  # type: ignore[type-arg]
    key, fn, *operands = case
    assert key_of(fn, *operands) == key


@pytest.mark.parametrize("precision", ["high", "highest"])
def test_tf32_is_another_problem(precision):
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        key = key_of(torch.mm, Input((M, K), F32), Input((K, N), F32))
    finally:
        torch.set_float32_matmul_precision(before)
    assert key.endswith(":tf32") is (precision == "high")


@pytest.mark.parametrize(
    ("size", "stride", "transposed"),
    [
        ((8, 4), (4, 1), False),
        ((8, 4), (1, 8), True),
        ((8, 4), (16, 1), False),
        ((1, 4), (99, 1), False),
        ((8, 1), (1, 1), False),
        ((8, 1), (1, 8), False),
        ((1, 1), (1, 1), False),
        ((3, 8, 4), (0, 1, 8), True),
    ],
)
def test_layouts(size, stride, transposed):
    assert is_transposed(size, stride) is transposed


@pytest.mark.parametrize("stride", [(8, 2), (0, 1), (2, 16), (1, 1)])
def test_other_strides_are_unsupported(stride):
    with pytest.raises(UnsupportedProblemError):
        is_transposed((8, 4), stride)


@pytest.mark.parametrize("config", [{}, MAX_AUTOTUNE])
def test_a_beta_of_0_is_unsupported(config):
    """The bias must not be read: it may be uninitialised, and a template adds 0 times it."""
    fn = functools.partial(torch.baddbmm, beta=0, alpha=0.125)
    lower(fn, [Input((B, M, N)), BATCH_A, BATCH_X], config, generate=False)
    lower(functools.partial(torch.addmm, beta=0), [Input((N,)), A, X], config, generate=False)
    assert {problem.op for problem in PROBLEMS} <= {"mm"}  # 2.15 turns the addmm into it
    reasons = registration.status().counters.abstentions
    assert "baddbmm with a beta of 0" in reasons
    assert ("addmm with a beta of 0" in reasons) == (not PROBLEMS)
