import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

from tests import samples
from tests.cli.program import inside, told_off, torch_diode
from torch_diode import OperationShapeSet, Table, __version__
from torch_diode.cli.app import app
from torch_diode.files.datasets import write_dataset
from torch_diode.files.shape_sets import write_shapes
from torch_diode.files.tables import write_table

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


WRITES = {"output", "output_dir", "write_card", "log_dir"}
"""Parameters of commands that write files."""
CPU = ("--device", "cpu")
ONE = ("--num-shapes", "1", "--max-size", "16", "--output", "there.parquet")
TRAINS = ("--dataset", "d.parquet", "--model")
REPLACING = {
    "collect": [[*CPU, "collect", *ONE]],
    "collect-shapeset": [
        [*CPU, "collect-shapeset", "--shapeset", "s.json", "--output", "there.parquet"]
    ],
    "create-validation": [[*CPU, "create-validation", *ONE]],
    "collect-and-train": [
        [*CPU, "collect-and-train", *ONE, "--model", "new.pt"],
        [*CPU, "collect-and-train", *ONE[:-1], "new.parquet", "--model", "there.pt"],
    ],
    "train": [["train", *TRAINS, "there.pt"], ["train", *TRAINS, "carded.pt"]],
    "validate-model": [
        ["validate-model", "--dataset", "d.parquet", "--model", "carded.pt", "--write-card"]
    ],
    "validate-max-autotune": [
        [
            "validate-max-autotune",
            "--dataset",
            "d.parquet",
            "--max-autotune-solution",
            "new.json",
            "-o",
            "there.json",
        ]
    ],
    "rank": [
        ["rank", "--input", "p.jsonl", "--output", "there.parquet", "--hardware", "nvidia-h200"]
    ],
    "report": [["report", "--dataset", "d.parquet", "--output", "there.html"]],
    "convert": [["convert", "d.parquet", "--output", "there.parquet"]],
    "convert-json-to-msgpack": [["convert-json-to-msgpack", "--input-files", "there.json"]],
    "table build": [["table", "build", "--dataset", "d.parquet", "--output", "there.json"]],
    "table merge": [["table", "merge", "t.json", "--output", "there.json"]],
    "table export": [["table", "export", "t.json", "--inductor", "--output", "there.json"]],
    "trace": [["trace", "--output", "there.json", "program.py"]],
    "tune": [["tune", "--output", "there.json", "program.py"]],
    "collector-example": [["collector-example", "--output-dir", "there"]],
    "model-example": [["model-example", "--dataset", "d.parquet", "--model", "there.pt"]],
}
"""Command lines that would replace a file, by command."""


@cache
def commands() -> dict[str, Any]:
    """Every command by its name, those of groups with the group's."""
    found = {}
    for name, command in typer.main.get_command(app).commands.items():
        group = getattr(command, "commands", None)
        found |= {f"{name} {n}": c for n, c in group.items()} if group else {name: command}
    return found


def test_every_command_that_writes_a_file_can_be_told_to_overwrite():
    writing = {
        name for name, command in commands().items() if WRITES & {p.name for p in command.params}
    }
    overwriting = {n for n, c in commands().items() if "overwrite" in {p.name for p in c.params}}
    assert writing <= overwriting == set(REPLACING)


@pytest.mark.parametrize(
    "arguments", [line for lines in REPLACING.values() for line in lines], ids=" ".join
)
def test_no_command_replaces_a_file_unless_told_to(arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_dataset(samples.dataset().take([0, 1, 2, 3, 4, 5]), Path("d.parquet"))
    write_table(Table.from_dataset(samples.dataset()), "t.json")
    write_shapes(OperationShapeSet.of([samples.LINEAR]), "s.json")
    Path("p.jsonl").write_text(json.dumps(samples.LINEAR.to_dict()))
    Path("program.py").write_text("raise SystemExit(9)")
    for name in ("there.parquet", "there.pt", "there.json", "there.html", "there.msgpack"):
        Path(name).write_text(f"irreplaceable {name}")
    Path("carded.json").write_text('{"format": "torch-diode model"}')
    Path("there").mkdir()
    Path("there/collector_example.json").write_text("irreplaceable")
    before = contents(tmp_path)
    assert "exists already" in told_off(*arguments)
    assert contents(tmp_path) == before


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_reader_that_goes_ends_the_program_as_it_ends_others():
    for program in (f"{sys.executable} -m torch_diode models", "seq 100000"):
        command = ["bash", "-c", f"{program} | true; echo ${{PIPESTATUS[0]}}"]
        ended = subprocess.run(command, capture_output=True, text=True, check=True)
        assert (ended.stdout, ended.stderr) == ("141\n", "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_behind_standard_output_is_one_sentence():
    command = [sys.executable, "-m", "torch_diode", "models", "--json"]
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert ended.returncode == 2
    assert ended.stderr == "torch-diode: standard output: No space left on device\n"
