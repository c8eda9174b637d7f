import json

import pytest
import torch

from tests.cli.program import inside, told_off
from torch_diode import MMShape, ModelHeuristic, rank
from torch_diode.hardware import known
from torch_diode.model.registry import load_registered

SIZES = ("--m", "512", "--n", "4096", "--k", "4096")
H200 = ("--hardware", "nvidia-h200")


def predicted(*arguments):
    ended = inside("predict", *arguments, "--json")
    assert ended.code == 0, ended.err
    return json.loads(ended.out)


def test_it_is_what_the_library_ranks():
    found = predicted("--op", "mm", *SIZES, "--dtype", "bfloat16", *H200, "--top", "7")
    model = ModelHeuristic(load_registered("matmul", "nvidia-h200"))
    expected = rank(MMShape("mm", 512, 4096, 4096), hardware="nvidia-h200", heuristic=model, top=7)
    assert [entry["predicted_us"] for entry in found["ranked"]] == [
        p.predicted_us for p in expected
    ]
    assert found["ranked"][0]["template"] == expected[0].candidate.template
    assert found["hardware"] == "nvidia-h200"
    assert found["candidates"] > 1000


def test_for_people_it_is_a_table_with_units():
    ended = inside("predict", *SIZES, *H200, "--top", "2")
    head, names, _, *rows, sizes, last = ended.out.splitlines()
    assert last.startswith("A plain torch.compile runs ")
    assert sizes.startswith("With static shapes it counts up to 0.2 µs less for a Triton kernel")
    assert head.startswith("mm:512x4096x4096:bfloat16:nn on nvidia-h200, ")
    assert names.split() == ["candidate", "µs", "±", "TFLOP/s", "of", "ATen"]
    assert [row.split()[0] for row in rows] == ["1", "2"]
    assert "\x1b[" not in ended.out


def test_what_the_model_does_not_know_the_analytical_heuristic_answers():
    unknown = ("--op", "bmm", "--b", "100000", *SIZES, "--dtype", "float32")
    found = predicted(*unknown, *H200)
    assert found["source"] == "analytical"
    assert "B 100000 is far beyond" in found["notes"][0]
    assert found["plain_compile"]["template"] == "aten", "left to torch"


def test_a_chip_without_a_model_is_answered_for_and_that_is_said():
    found = predicted(*SIZES, "--hardware", "NVIDIA B200")
    assert found["hardware"] == "nvidia-b200"
    assert "no model for it" in found["notes"][0]


def test_for_no_close_relative_it_guesses_and_says_that_a_compile_does_not():
    small = ("--m", "64", "--n", "64", "--k", "64")
    found = predicted(*small, "--hardware", "nvidia-h20")
    assert found["source"] == "model nvidia-h200"
    assert found["ranked"][0]["template"].startswith("triton::")
    assert "close relatives only" in found["notes"][0]
    assert found["left_to_torch"]
    assert found["plain_compile"]["template"] == "aten"
    told = inside("predict", *small, "--hardware", "nvidia-h20").out.splitlines()
    assert told[-1] == "A plain torch.compile leaves it to torch, which runs aten."
    own = predicted(*small, "--hardware", "nvidia-h200")
    assert not own["notes"]
    assert not own["left_to_torch"]
    assert own["plain_compile"]["template"] == "triton::mm"


@pytest.mark.parametrize("chip", ["nvidia-a100", "nvidia-h100", "nvidia-gh200"])
def test_where_a_model_only_shortlists_that_is_said(chip):
    small = ("--m", "64", "--n", "64", "--k", "64", "--hardware", chip)
    found = predicted(*small)
    assert not found["notes"]
    assert found["left_to_torch"]
    assert not found["decides_alone"]
    assert found["plain_compile"]["template"] == "aten"
    assert (
        f"It shortlists for max-autotune: {found['shortlists']}." in inside("predict", *small).out
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--m", "0", "--n", "1", "--k", "1", *H200), "MMShape.M: got 0"),
        ((*SIZES, "--hardware", "abacus"), "hardware: got 'abacus'"),
        ((*SIZES, "--op", "conv", *H200), "MMShape.op"),
        ((*SIZES, "--layout", "xx", *H200), "layout: got 'xx'"),
        ((*SIZES, "--model", "no.pt", *H200), "no.pt: no such file"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(given, said):
    assert said in told_off("predict", *given)


@pytest.mark.parametrize(("op", "m"), [("mm", 3), ("mm", 300), ("bmm", 64), ("bmm", 5000)])
def test_what_a_plain_compile_runs_is_what_inductor_is_told(op, m):
    pytest.importorskip("triton", reason="Inductor's CUDA lowering needs triton")
    from torch_diode.integration import registration
    from torch_diode.integration.capture.fake_gpu import Input, lower, pretend

    b, n, k = (4 if op == "bmm" else 1), 512, 256
    sizes = [((b,) if op == "bmm" else ()) + shape for shape in ((m, k), (k, n))]
    with pretend(known("nvidia-h200")), registration.using(shipped()):
        lower(getattr(torch, op), [Input(size) for size in sizes], generate=False)
        (made,) = registration.explain()[-1:]
    given = (("--m", m), ("--n", n), ("--k", k), ("--b", b), ("--op", op))
    found = predicted(*(str(part) for pair in given for part in pair), *H200)
    assert made.winner.candidate.to_dict() == found["plain_compile"]


def shipped():
    return ModelHeuristic(load_registered("matmul", "nvidia-h200"))


def test_a_cpu_is_predicted_for_its_threads(cpu_model):
    chip = ("--hardware", "amd-zen5", "--threads", "2", "--model", cpu_model)
    sizes = ("--m", "64", "--n", "512", "--k", "512", "--dtype", "float32", "--layout", "nt")
    found = predicted(*sizes, *chip)
    assert (found["hardware"], found["threads"], found["notes"]) == ("amd-zen5", 2, [])
    assert found["plain_compile"] == {"template": "onednn"}
    other = predicted(*sizes, *chip, "--threads", "3")
    assert "trained with 1, 2 threads, here are 3" in other["notes"][0]
    assert "on amd-zen5 with 2 threads, " in inside("predict", *sizes, *chip).out
