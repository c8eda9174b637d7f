from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.cli.program import inside, told_off


@pytest.fixture(scope="module")
def script():
    ended = inside("completion", "bash")
    assert ended.code == 0, ended.err
    return ended.out


def completed(script: str, line: str) -> list[str]:
    """What a real bash offers after this line, with TAB pressed at its end."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("bash is not installed")
    words = line.split(" ")
    quoted = " ".join(f"'{word}'" for word in words)
    asked = f"{script}\nCOMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}\n_torch_diode\n"
    asked += 'printf "%s\\n" "${COMPREPLY[@]}"\n'
    ended = subprocess.run([bash, "--norc", "-eu"], input=asked, capture_output=True, text=True)
    assert ended.stderr == ""
    return ended.stdout.split()


def test_commands(script):
    assert completed(script, "torch-diode val") == ["validate-model", "validate-max-autotune"]
    assert "train" in completed(script, "torch-diode ")
    assert completed(script, "torch-diode --seed 42 tra") == ["train", "trace"]


def test_options_of_a_command(script):
    assert completed(script, "torch-diode train --num-") == ["--num-epochs", "--num-layers"]
    assert completed(script, "torch-diode table build --ov") == ["--overwrite"]


def test_commands_within_a_command(script):
    assert completed(script, "torch-diode table ex") == ["export"]


def test_values(script):
    assert completed(script, "torch-diode train --model-type ") == ["base", "deep"]
    assert "nvidia-h200" in completed(script, "torch-diode predict --hardware nvidia-h2")
    assert completed(script, "torch-diode --format pa") == ["parquet"]


def test_files_where_any_may_stand(script, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "timings.parquet").touch()
    assert completed(script, "torch-diode train --dataset ti") == ["timings.parquet"]


def test_the_script_registers_itself(script):
    ended = subprocess.run(
        ["bash", "--norc", "-c", f"{script}\ncomplete -p torch-diode"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "_torch_diode torch-diode" in ended.stdout


@pytest.mark.parametrize(("shell", "sign"), [("zsh", "bashcompinit"), ("fish", "-l num-epochs")])
def test_other_shells(shell, sign):
    ended = inside("completion", shell)
    assert ended.code == 0
    assert sign in ended.out
    if shutil.which(shell):
        checked = subprocess.run([shell, "-n"], input=ended.out, capture_output=True, text=True)
        assert checked.returncode == 0, checked.stderr


def test_an_unknown_shell_is_a_sentence():
    assert "expected one of bash, zsh, fish" in told_off("completion", "tcsh")
