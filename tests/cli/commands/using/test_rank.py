import json

import pytest

from tests.cli.program import inside, told_off, torch_diode

ATEN = {"template": "aten"}
SMALL = {"template": "triton::mm", "block_m": 16, "block_n": 16, "block_k": 16,
         "group_m": 8, "num_stages": 1, "num_warps": 1}  # fmt: skip
LARGE = {"template": "triton::mm", "block_m": 64, "block_n": 128, "block_k": 64,
         "group_m": 8, "num_stages": 4, "num_warps": 4}  # fmt: skip
PROBLEM = {"op": "mm", "B": 1, "M": 512, "N": 4096, "K": 4096, "dtype": "bfloat16",
           "transpose_a": False, "transpose_b": True}  # fmt: skip


@pytest.fixture
def ask(tmp_path):
    def run(*lines, more=()):
        text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
        (tmp_path / "problems.jsonl").write_text(text + "\n")
        files = ("--input", tmp_path / "problems.jsonl", "--output", tmp_path / "ranked.jsonl")
        return ("rank", *files, "--hardware", "nvidia-h200", *more)

    return run


def answers(tmp_path):
    return [json.loads(line) for line in (tmp_path / "ranked.jsonl").read_text().splitlines()]


def test_candidates_given_are_put_in_order(ask, tmp_path):
    candidates = [SMALL, ATEN, LARGE]
    ended = inside(*ask({**PROBLEM, "candidates": candidates}))
    assert ended.code == 0, ended.err
    (answer,) = answers(tmp_path)
    assert set(answer) == {"order", "predicted_us"}
    times = answer["predicted_us"]
    assert len(times) == 3
    assert answer["order"] == sorted(range(3), key=times.__getitem__)
    assert answer["order"][-1] == 0


def test_without_candidates_the_best_of_the_whole_space(ask, tmp_path):
    inside(*ask(PROBLEM, more=("--top", "4")))
    (answer,) = answers(tmp_path)
    times = [entry["predicted_us"] for entry in answer["ranked"]]
    assert len(times) == 4
    assert times == sorted(times)
    assert "template" in answer["ranked"][0]


def test_answers_come_in_the_order_of_the_questions(ask, tmp_path):
    lines = [{**PROBLEM, "M": m, "candidates": [ATEN]} for m in (8192, 16, 1024)]
    inside(*ask(lines[0], "", *lines[1:]))
    large, small, middle = (answer["predicted_us"][0] for answer in answers(tmp_path))
    assert small < middle < large


def test_a_chip_that_a_compile_would_not_ask_the_model_for_is_told_of(ask, tmp_path):
    ended = inside(*ask(PROBLEM, more=("--hardware", "nvidia-h20")))
    assert ended.code == 0
    assert "nvidia-h20: the model of nvidia-h200 answers" in ended.err
    assert len(answers(tmp_path)) == 1


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "line 2: not JSON"),
        ({**PROBLEM, "m": 1}, "line 2: problem: got an unknown field 'm'"),
        ({**PROBLEM, "candidates": [{}]}, "line 2: candidate: got no field 'template'"),
        ({**PROBLEM, "dtype": "int32"}, "line 2: mm:512x4096x4096:int32:nt"),
    ],
)
def test_a_bad_line_is_named_and_an_earlier_output_stays(ask, line, said, tmp_path):
    (tmp_path / "ranked.jsonl").write_text("earlier")
    assert said in told_off(*ask(PROBLEM, line, more=("--overwrite",)))
    assert (tmp_path / "ranked.jsonl").read_text() == "earlier"
    assert len(list(tmp_path.iterdir())) == 2


def test_the_input_is_not_written_over(ask, tmp_path):
    command = ask(PROBLEM, more=("--output", tmp_path / "problems.jsonl"))
    assert "got an input as the output" in told_off(*command)
    assert json.loads((tmp_path / "problems.jsonl").read_text()) == PROBLEM


def test_a_template_that_cannot_run_a_problem_is_told_of(ask):
    strange = [ATEN, {**SMALL, "template": "triton::bmm"}, {"template": "cutlass::best"}]
    ended = inside(*ask({**PROBLEM, "candidates": strange}, {**PROBLEM, "candidates": [ATEN]}))
    assert ended.code == 0
    assert "1 problems with triton::bmm, cutlass::best, which cannot run them" in ended.err


def test_on_standard_output_there_is_nothing_but_answers(ask, tmp_path):
    ask({**PROBLEM, "candidates": [ATEN]})
    files = ("--input", tmp_path / "problems.jsonl", "--output", "/dev/stdout")
    ended = torch_diode("rank", *files, "--hardware", "nvidia-h200")
    assert ended.returncode == 0
    assert json.loads(ended.stdout)["order"] == [0]
    assert "1 problems ranked" in ended.stderr
