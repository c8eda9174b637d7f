"""Small real programs, tuned for real; timings decide nothing here."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import torch_diode
from tests.cli.program import inside
from tests.cli.program import torch_diode as command
from torch_diode.files.datasets import read_dataset
from torch_diode.files.shape_sets import write_shapes
from torch_diode.files.tables import read_table
from torch_diode.hardware import detect, known
from torch_diode.integration.tuned_tables import TunedFolder, tuned_folder
from torch_diode.model.registry import ModelRegistry
from torch_diode.tuning import own_model
from torch_diode.types.errors import DiodeError, EmptySelectionError, FileFaultError
from torch_diode.types.problem import MMShape
from torch_diode.types.shapes import OperationShapeSet

PROBLEMS = 6
PROGRAM = """
import torch
{extra}
model = torch.nn.Sequential(*(torch.nn.Linear(s, s + 16) for s in {sizes}))
loss = torch.compile(torch.nn.Linear({first}, 24))(torch.randn(40, {first})).sum()
for layer in model:
    loss = loss + torch.compile(layer)(torch.randn(8, layer.in_features)).sum()
loss.backward()
"""


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch) -> Path:
    home = tmp_path / "home"
    monkeypatch.setenv("TORCH_DIODE_HOME", str(home))
    return home


@pytest.fixture
def folder() -> TunedFolder:
    return tuned_folder(detect("cpu"))


@pytest.fixture
def shapes(tmp_path) -> Path:
    problems = [MMShape("mm", 96, 512 + 8 * i, 512, dtype="float32") for i in range(PROBLEMS)]
    write_shapes(OperationShapeSet.of(problems), tmp_path / "shapes.json")
    return tmp_path / "shapes.json"


def write(path: Path, *sizes: int, extra: str = "") -> Path:
    path.write_text(PROGRAM.format(sizes=sizes, first=sizes[0], extra=extra), encoding="utf-8")
    return path


@pytest.mark.slow
def test_a_program_is_traced_forward_and_backward_measured_once_and_used(tmp_path, folder):
    program = write(tmp_path / "program.py", 48)
    first = torch_diode.tune(program, output=tmp_path / "table.json", quick=True)
    problems = {gain.use.problem for gain in first.gains}
    assert {p.op for p in problems} == {"addmm", "mm"}  # forward; the weight's gradient
    assert first.measured == len(problems)
    assert not first.waiting
    assert {row[1] for row in read_table(tmp_path / "table.json")} == problems

    more = torch_diode.tune(write(program, 48, 64), quick=True)
    assert more.reused == len(problems)
    assert more.measured > 0

    rows = {row[1] for row in read_table(folder.table)}
    script = """
import json, torch, torch_diode
torch.compile(torch.nn.Linear(48, 24))(torch.randn(40, 48))
decided = [(d.problem.key, d.source) for d in torch_diode.explain()]
print(json.dumps([decided, str(torch_diode.status())]))
"""
    told = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    decided, status = json.loads(told.stdout)
    assert decided == [[next(p.key for p in rows if p.M == 40 and p.op == "addmm"), "tuned table"]]
    assert "tuned table" in status


def test_a_function_is_tuned_and_decided_by_its_table_in_the_same_process():
    weight = torch.randn(72, 56)

    def call() -> None:
        torch.compiler.reset()
        torch.compile(torch.mm)(torch.randn(24, 72), weight)

    result = torch_diode.tune(call, quick=True)
    assert [(g.use.problem.M, g.use.count) for g in result.gains] == [(24, 1)]
    torch_diode.enable()
    try:
        before = len(torch_diode.explain())
        call()
        assert [d.source for d in torch_diode.explain()[before:]] == ["tuned table"]
    finally:
        torch_diode.disable()


def test_a_frozen_program_is_measured_with_packed_weights_too(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import torch, torch._inductor.config as config\nconfig.freezing = True\n"
        "with torch.no_grad():\n"
        "    torch.compile(torch.nn.Linear(64, 48).eval())(torch.randn(96, 64))\n"
    )
    (gain,) = torch_diode.tune(program).gains
    assert gain.use.frozen
    (row,) = read_table(tuned_folder(detect("cpu")).table)
    assert gain.use.own in {entry.candidate.template for entry in row[2]}


def test_a_dry_run_measures_nothing_and_says_what_it_would(shapes, home):
    result = torch_diode.tune(shapeset=shapes, dry_run=True, device="cpu")
    assert not result.gains
    assert len(result.waiting) == PROBLEMS
    assert result.seconds > 0
    assert not home.exists()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_after_a_kill_the_next_run_goes_on_and_then_nothing_is_left(number, shapes, folder):
    running = subprocess.Popen(
        [sys.executable, "-m", "torch_diode", "--device", "cpu", "tune", "--shapeset", shapes],
        env={**os.environ, "TORCH_DIODE": "0"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    parts = folder.path / "timings.parquet.parts"
    deadline = time.monotonic() + 100
    while time.monotonic() < deadline and not journaled(parts) and running.poll() is None:
        time.sleep(0.02)
    running.send_signal(number)
    output, errors = running.communicate()
    if number == signal.SIGINT:
        assert running.returncode == 130, errors
        assert "What is measured is kept; the same command continues" in output
        assert "Traceback" not in errors
        assert 0 < len(read_table(folder.table)) < PROBLEMS
    result = torch_diode.tune(shapeset=shapes, device="cpu")
    assert result.measured + result.reused == PROBLEMS
    assert result.reused > 0
    assert len(read_dataset(folder.timings).problems) == PROBLEMS
    assert not parts.exists()
    again = torch_diode.tune(shapeset=shapes, device="cpu")
    assert (again.measured, again.reused) == (0, PROBLEMS)


def test_a_table_that_is_not_of_the_timings_is_written_again(shapes, folder):
    torch_diode.tune(shapeset=shapes, device="cpu", quick=True)
    whole = read_table(folder.table)
    for text in (None, "{", folder.table.read_text().replace("mm:96x512x512", "mm:96x512x999")):
        folder.table.unlink() if text is None else folder.table.write_text(text)
        assert torch_diode.tune(shapeset=shapes, device="cpu", quick=True).measured == 0
        assert read_table(folder.table) == whole
    unchanged = folder.table.stat().st_ino
    torch_diode.tune(shapeset=shapes, device="cpu", quick=True)
    assert folder.table.stat().st_ino == unchanged
    folder.timings.write_bytes(b"damaged")
    with pytest.raises(FileFaultError, match=f"tune --forget {folder.name}` deletes"):
        torch_diode.tune(shapeset=shapes, device="cpu", quick=True)


def journaled(parts: Path) -> bool:
    return any(file.stat().st_size for file in parts.glob(".journal-*.log"))


def test_what_is_not_measured_when_time_is_up_waits_for_the_next_run(shapes):
    first = torch_diode.tune(shapeset=shapes, minutes=1e-6, device="cpu")
    assert first.measured + len(first.waiting) == PROBLEMS
    assert first.waiting


@pytest.mark.parametrize(
    ("text", "fault", "message"),
    [
        ("raise SystemExit(3)", DiodeError, "program.py: got exit code 3; expected a program"),
        ("import os; os.abort()", DiodeError, "program.py: got signal 6; expected a program"),
        ("1 + 1", EmptySelectionError, "got no matmul in what it compiled"),
        ("while True: pass", EmptySelectionError, r"got no matmul within 0.5 s \(--timeout\)"),
    ],
)
def test_a_program_that_cannot_be_tuned_is_refused(tmp_path, home, text, fault, message):
    program = tmp_path / "program.py"
    program.write_text(text)
    with pytest.raises(fault, match=message):
        torch_diode.tune(program, timeout=0.5 if "while" in text else None)
    assert not home.exists()


def test_a_home_that_cannot_be_written_is_refused_before_the_program_runs(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TORCH_DIODE_HOME", str(tmp_path / "file"))
    program = tmp_path / "program.py"
    program.write_text("open('ran', 'w')")
    with pytest.raises(FileFaultError, match="choose another TORCH_DIODE_HOME"):
        torch_diode.tune(program)


@pytest.mark.slow
def test_a_model_of_this_machine_is_trained_and_decides_on_other_problems(
    shapes, home, folder, monkeypatch
):
    """As on a CPU that no shipped model knows, with fewer and smaller problems than usual."""
    monkeypatch.setattr(own_model, "_DRAWN_QUICKLY", 16)
    monkeypatch.setattr(own_model, "_LARGEST", {"cpu": 512})
    monkeypatch.setattr(own_model, "shipped_model", lambda hardware: None)
    (note,) = torch_diode.tune(shapeset=shapes, device="cpu", quick=True, model=True).notes
    assert len(read_dataset(folder.drawn).problems) == 16
    if "no model was kept" not in note:  # chance, with so few problems
        model = ModelRegistry().find("matmul", detect("cpu"))
        assert f"the model in {model.path.parent} decides" in note
        assert model.path.is_relative_to(home)
        assert model.load().metadata.threads == [detect("cpu").threads]


def test_where_a_shipped_model_knows_this_cpu_it_stays(folder):
    zen = replace(known("amd-zen5"), threads=2)
    options = {"quick": True, "device": "cpu", "seed": 0, "progress": print}
    said = own_model.train_own_model(zen, folder, **options)
    assert said.startswith("no model was trained: the shipped one knows amd-zen5 with 2 threads")


def test_the_command_prints_gains_lists_and_forgets(shapes, folder):
    ended = command("--device", "cpu", "tune", "--quick", "--shapeset", shapes)
    assert ended.returncode == 0, ended.stderr
    assert "mm:96x512x512:float32:nn" in ended.stdout
    assert "x as fast" in ended.stdout
    assert str(folder.path) in ended.stdout
    out = [inside("tune", "--list").out, inside("tune", "--forget", "mine")]
    assert folder.name in out[0]
    assert out[1].code == 2
    assert "expected all or one of" in out[1].err
    assert folder.path.exists()
    assert inside("tune", "--forget", folder.name).code == 0
    assert not folder.path.exists()
