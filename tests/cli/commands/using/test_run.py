import os

from tests.cli.program import inside, told_off, torch_diode

PROGRAM = """
import os, sys, torch_diode
on = torch_diode.status().enabled
print(on, os.environ.get("TORCH_DIODE_AUTOLOAD"), sys.argv[1:])
sys.exit(5)
"""


def test_a_program_runs_registered_with_its_own_options_and_exit_code(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    for way in (["program.py"], ["-m", "program"]):
        ended = torch_diode("run", *way, "--help", "--steps", cwd=tmp_path, TORCH_DIODE="1")
        assert ended.returncode == 5, ended.stderr
        assert ended.stdout == "True 1 ['--help', '--steps']\n"


def test_the_switch_still_turns_it_off(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_DIODE", "0")
    monkeypatch.delenv("TORCH_DIODE_AUTOLOAD", raising=False)
    (tmp_path / "program.py").write_text(PROGRAM)
    ended = inside("run", tmp_path / "program.py")
    assert (ended.code, ended.out) == (5, "False None []\n")
    assert "TORCH_DIODE_AUTOLOAD" not in os.environ


def test_what_cannot_run_is_one_sentence(tmp_path):
    assert "no such file" in told_off("run", tmp_path / "missing.py")
    assert "expected a module" in told_off("run", "-m", "no_such_module")
