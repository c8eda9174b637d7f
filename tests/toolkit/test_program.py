"""A user's program, run as Python would run it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from torch_diode.toolkit.program import MODULE, check_program, run_program
from torch_diode.types.errors import FileFaultError, InvalidValueError


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


SELF = """
import json, sys
main = sys.modules["__main__"]
me = {"argv": sys.argv, "path": sys.path, "main": vars(main) is globals(), "name": __name__}
me |= {"file": __file__, "package": __package__, "spec": __spec__ and __spec__.name}
print(json.dumps(me))
raise SystemExit(3)
"""


@pytest.mark.parametrize("way", [["script.py"], ["{}/folder"], ["-m", "pack.age"], ["-m", "pack"]])
def test_it_runs_as_under_python_itself(tmp_path, monkeypatch, capfd, way):
    for file in ("script.py", "folder/__main__.py", "pack/age.py", "pack/__main__.py"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(SELF)
    monkeypatch.chdir(tmp_path)
    # As the first entry of this process, which the program must not see.
    way = [part.format(tmp_path) for part in way]
    launcher = f"import sys; sys.path[0] = '/launcher'\n{RUNNER}"
    runs = ([sys.executable, *way], [sys.executable, "-c", launcher, *way])
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    ended = [subprocess.run([*run, "--steps", "1"], check=False).returncode for run in runs]
    assert ended == [3, 3]
    python, own = map(json.loads, capfd.readouterr().out.splitlines())
    assert own == python


RUNNER = """
from tests.toolkit.test_program import Path, check_and_run
sys.exit(check_and_run(Path(sys.argv[1]), sys.argv[2:]))
"""


def check_and_run(script, arguments):
    check_program(script, arguments)
    return run_program(script, arguments)


@pytest.mark.parametrize("arguments", [[], ["no_such_module"], ["json.no_such_part"], ["."]])
def test_a_module_that_is_not_there_is_one_sentence(arguments):
    with pytest.raises(InvalidValueError, match=r"-m: got .*expected .* module"):
        check_and_run(MODULE, arguments)


def test_a_syntax_error_and_a_hook_of_the_programs_are_as_under_python(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    script = tmp_path / "program.py"
    script.write_text("a b\n")
    assert run_program(script, []) == 1
    assert capsys.readouterr().err.startswith(f'  File "{script}", line 1')
    script.write_text("import sys\nsys.excepthook = lambda *_: print('hooked')\n1 / 0\n")
    assert run_program(script, []) == 1
    assert capsys.readouterr().out == "hooked\n"
