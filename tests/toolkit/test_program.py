"""A user's program, run as Python would run it."""

import sys
from pathlib import Path

import pytest

from torch_diode.toolkit.program import check_program, run_program
from torch_diode.types.errors import FileFaultError


def test_it_finds_what_lies_beside_it_and_leaves_no_trace(tmp_path, capsys):
    (tmp_path / "beside_it.py").write_text("value = 7\n")
    script = tmp_path / "program.py"
    script.write_text("import sys, beside_it\nprint(__name__, beside_it.value, sys.argv[1:])\n")
    before = (list(sys.argv), list(sys.path))
    assert run_program(script, ["--steps", "1"]) == 0
    assert capsys.readouterr().out == "__main__ 7 ['--steps', '1']\n"
    assert (sys.argv, sys.path) == before


def test_its_exit_code_is_passed_on_and_its_last_words_shown(tmp_path, capsys):
    script = tmp_path / "program.py"
    for text, code, said in (("4", 4, ""), ("None", 0, ""), ("'no data'", 1, "no data\n")):
        script.write_text(f"raise SystemExit({text})\n")
        assert run_program(script, []) == code
        assert capsys.readouterr().err == said


def test_its_fault_is_shown_with_its_own_frames_alone(tmp_path, capsys):
    script = tmp_path / "program.py"
    script.write_text("def inner():\n    raise ValueError('x')\n\ninner()\n")
    assert run_program(script, []) == 1
    shown = capsys.readouterr().err
    assert shown.startswith(f'Traceback (most recent call last):\n  File "{script}", line 4')
    assert shown.endswith("ValueError: x\n")
    assert "torch_diode" not in shown.replace(str(tmp_path), "")


def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path, monkeypatch):
    """As root any can, so it fails when it is opened."""
    script = tmp_path / "program.py"
    script.touch()

    def closed(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", closed)
    with pytest.raises(FileFaultError, match=r"program\.py: Permission denied"):
        check_program(script)
