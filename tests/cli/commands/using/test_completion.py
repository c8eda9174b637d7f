import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.program import inside, told_off


def completed(line: str, folder: Path) -> list[str]:
    """The words a real bash offers with TAB pressed at the end of this line."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("bash is not installed")
    program = folder / "torch-diode"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m torch_diode "$@"\n')
    program.chmod(0o755)
    words = line.split(" ")
    quoted = " ".join(f"'{word}'" for word in words)
    script = inside("completion", "bash").out
    script += f"\nCOMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}\n"
    script += f"_torch_diode_completion '{program}'\n"
    script += 'printf "%s\\n" "${COMPREPLY[@]}"; complete -p torch-diode >&2\n'
    ended = subprocess.run(
        [bash, "--norc", "-e"],
        input=script,
        capture_output=True,
        text=True,
        env={**os.environ, "TORCH_DIODE": "0"},
        check=True,
    )
    assert "_torch_diode_completion torch-diode" in ended.stderr
    return ended.stdout.split()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("torch-diode val", ["validate-model", "validate-max-autotune"]),
        ("torch-diode --seed 42 tra", ["trace", "train"]),
        ("torch-diode train --model-type ", ["base", "deep", "library"]),
        ("torch-diode collect --operations mm --dtypes bf", ["bfloat16"]),
        ("torch-diode train --dataset ti", []),  # bash then completes files
    ],
)
def test_bash_completes_commands_options_and_values(line, expected, tmp_path):
    assert completed(line, tmp_path) == expected


@pytest.mark.parametrize(("shell", "sign"), [("zsh", "#compdef"), ("fish", "complete --command")])
def test_other_shells_get_a_script_of_their_own(shell, sign):
    ended = inside("completion", shell)
    assert ended.code == 0
    assert sign in ended.out
    if shutil.which(shell):
        checked = subprocess.run([shell, "-n"], input=ended.out, capture_output=True, text=True)
        assert checked.returncode == 0, checked.stderr


def test_an_unknown_shell_is_refused():
    assert "expected one of bash, zsh, fish" in told_off("completion", "tcsh")
