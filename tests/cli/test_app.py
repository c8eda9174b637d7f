import subprocess
import sys
from pathlib import Path

import pytest

from tests import samples
from tests.cli.program import inside, torch_diode
from torch_diode import __version__
from torch_diode.cli.app import app
from torch_diode.files.datasets import write_dataset

ROOT = Path(__file__).parents[2]


def test_the_version_is_the_packages():
    ended = torch_diode("--version")
    assert (ended.returncode, ended.stdout) == (0, f"torch-diode {__version__}\n")


def test_without_a_command_it_shows_help():
    ended = inside()
    assert "Usage: torch-diode" in ended.out + ended.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["models"],
        ["stats", "nowhere.parquet"],
        ["collect", "--min-size", "0", "--output", "nowhere/timings.parquet"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_nobody_waits_for_torch_who_does_not_need_it(arguments, tmp_path):
    program = (
        "import sys\n"
        "from torch_diode.cli import main\n"
        "try:\n"
        "    main()\n"
        "finally:\n"
        "    print('torch' in sys.modules, file=sys.stderr)\n"
    )
    command = [sys.executable, "-c", program, *arguments]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.stderr.splitlines()[-1] == "False"


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["--format", "xml", "stats", "x"],
        ["stats"],
        ["stats", "x", "--limit", "-1"],
        ["--seed", "-1", "stats", "x"],
    ],
)
def test_a_command_line_that_is_none_is_exit_code_2(arguments):
    ended = inside(*arguments)
    assert (ended.code, ended.out) == (2, "")
    assert "Error: " in ended.err


def test_every_command_has_help_with_an_example():
    """In one process: what is checked is the text, not that a process can be started."""
    commands = [(c.name, c.callback) for c in app.registered_commands]
    commands += [
        (f"{group.name} {command.name or command.callback.__name__}", command.callback)
        for group in app.registered_groups
        for command in group.typer_instance.registered_commands
    ]
    assert {"convert", "stats", "status", "table build"} <= {name for name, _ in commands}
    for name, callback in commands:
        example = next(line for line in callback.__doc__.splitlines() if "Example: " in line)
        assert example.strip().startswith(f"Example: torch-diode {name} ") or "--" in example


def test_the_historic_name_is_the_same_program(tmp_path):
    write_dataset(samples.dataset(), tmp_path / "d.json")
    script = ROOT / "workflows" / "matmul_toolkit.py"
    old = subprocess.run(
        [sys.executable, script, "stats", "d.json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert old.stdout == torch_diode("stats", "d.json", cwd=tmp_path).stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_behind_standard_output_is_one_sentence():
    command = [sys.executable, "-m", "torch_diode", "models", "--json"]
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert ended.returncode == 2
    assert ended.stderr == "torch-diode: standard output: No space left on device\n"
