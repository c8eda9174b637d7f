"""The examples in the pages and the README, run as a reader would."""

import ast
import os
import shlex
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
import typer

from tests.docs.pages import PAGES, ROOT, Block, blocks
from tests.scripts import programs_in
from torch_diode.cli.app import app
from torch_diode.cli.options.parameters import repeat_options

ALL = [block for page in PAGES for block in blocks(page)]
HAS_GPU = torch.cuda.is_available()
THINGS = {name for name in ("jq",) if shutil.which(name)} | ({"gpu"} if HAS_GPU else set())
THINGS |= {"triton"} if find_spec("triton") else set()
RUNNING = sorted({block.page for block in ALL if block.runs})
ON_A_GPU = sorted({block.page for block in ALL if block.needs("gpu")})


@pytest.fixture
def reader(tmp_path, monkeypatch):
    """An empty directory, with the programs on the path and the checkout named."""
    programs = programs_in(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("CHECKOUT", str(ROOT))
    place = tmp_path / "work"
    place.mkdir()
    return place


def run_all(page: str, things: set[str], place: Path) -> None:
    for number, block in enumerate(blocks(page)):
        if block.applies(things):
            run(block, number, place)


def run(block: Block, number: int, place: Path) -> None:
    command = [sys.executable] if block.language == "python" else ["bash", "-euo", "pipefail"]
    script = place.parent / f"block_{number}"
    # Fewer epochs train a worse model by the same steps.
    script.write_text(block.code.replace("--num-epochs 50", "--num-epochs 4"), encoding="utf-8")
    ended = subprocess.run(
        [*command, script], cwd=place, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, f"{block.page}:\n{block.code}\n{ended.stdout}\n{ended.stderr}"


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize("page", RUNNING)
def test_the_examples_of_a_page_run_in_order(page, reader):
    run_all(page, THINGS - {"gpu"}, reader)


@pytest.mark.skipif(not HAS_GPU, reason="needs a GPU")
@pytest.mark.parametrize("page", ON_A_GPU)
def test_the_examples_of_a_page_run_in_order_on_a_gpu(page, reader):
    run_all(page, THINGS, reader)


def test_the_guides_have_examples_that_run():
    assert {"README.md", "docs/quickstart.md", "docs/training.md"} <= set(RUNNING)
    assert {"docs/heuristics.md", "docs/integrations.md", "docs/commands.md"} <= set(RUNNING)
    assert "docs/decisions.md" in RUNNING


TUTORIAL = """\
torch-diode --format msgpack --seed 42 collect --output tutorial_dataset.msgpack --num-shapes 10 \
--search-space EXHAUSTIVE --search-mode max-autotune --log-normal
torch-diode --seed 42 train --data-dir . --model tutorial_model.pt --model-type deep \
--batch-size 32 --num-epochs 50 --learning-rate 0.001 --file-extensions msgpack
torch-diode --format msgpack --seed 43 create-validation --output tutorial_validation.msgpack \
--num-shapes 5 --search-space EXHAUSTIVE --search-mode max-autotune --log-normal
torch-diode --seed 42 validate-model --model tutorial_model.pt \
--dataset tutorial_validation.msgpack --batch-size 32 --top-n-worst 5
torch-diode --seed 42 validate-max-autotune --model tutorial_model.pt \
--dataset tutorial_validation.msgpack --max-autotune-solution tutorial_max_autotune.json \
--batch-size 32
"""


def test_the_tutorials_commands_are_run_as_they_always_were_written():
    lines = [
        line
        for block in blocks("docs/training.md")
        for line in block.code.splitlines()
        if block.runs and line.startswith("torch-diode --")
    ]
    assert lines == TUTORIAL.splitlines()


@pytest.mark.parametrize("page", sorted({b.page for b in ALL if b.language == "python"}))
def test_python_blocks_are_python(page):
    for block in blocks(page):
        if block.language == "python":
            ast.parse(block.code)


def command_lines(code: str) -> list[list[str]]:
    """Words of each `torch-diode` command of a script."""
    found = []
    for line in code.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if "torch-diode" in words:
            words = words[words.index("torch-diode") + 1 :]
            stops = [i for i, word in enumerate(words) if word in (">", "|", "&&", ";", "||")]
            found.append(words[: stops[0]] if stops else words)
    return found


def unknown_words(words: list[str]) -> list[str]:
    """Unknown commands and options of a command line, up to a program's own arguments."""
    known = typer.main.get_command(app)
    rest = list(repeat_options(words))
    wrong: list[str] = []
    while rest:
        word = rest.pop(0)
        if word.startswith("--"):
            options = {option for param in known.params for option in param.opts}
            options |= {option for param in known.params for option in param.secondary_opts}
            if word.partition("=")[0] not in options | {"--help"}:
                wrong.append(word)
            elif not hasattr(known, "commands"):
                continue
            elif rest:
                rest.pop(0)
        elif hasattr(known, "commands"):
            if word not in known.commands:
                return [*wrong, word]
            known = known.commands[word]
        elif known.context_settings.get("ignore_unknown_options"):
            return wrong  # the rest belongs to the program
    return wrong


SHELL = [block for block in ALL if block.language == "bash" and "torch-diode " in block.code]


@pytest.mark.parametrize("page", sorted({block.page for block in SHELL}))
def test_command_lines_use_existing_commands_and_options(page):
    for block in SHELL:
        if block.page == page and "<<" not in block.code:
            for words in command_lines(block.code):
                assert unknown_words(words) == [], words


def test_an_unknown_option_or_command_is_detected():
    assert unknown_words(["--seed", "1", "train", "--dataset", "a", "--modle", "b"]) == ["--modle"]
    assert unknown_words(["table", "biuld"]) == ["biuld"]
    assert unknown_words(["table", "build", "--dataset", "a", "--output", "b", "--k", "3"]) == []
