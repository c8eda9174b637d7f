"""Torch's entry point, as the full distribution installs it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

PROGRAM = """
import sys
{first}
import torch
diode = sys.modules.get("torch_diode")
print(*sorted({{name.partition(".")[0] for name in sys.modules if "torch_diode" in name}}))
print(diode is not None and diode.status().enabled, "torch._inductor.ir" in sys.modules)
"""
NOTHING = "torch_diode_autoload\nFalse False\n"
ON = "torch_diode torch_diode_autoload\nTrue False\n"


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """The full distribution, built and installed."""
    target = tmp_path_factory.mktemp("site")
    install = ("install", "-q", "--no-deps", "--no-build-isolation", "--no-index", "--target")
    subprocess.run([sys.executable, "-m", "pip", *install, target, ROOT], check=True)
    return target


def after_import(site: Path, first: str = "", **environ: str) -> subprocess.CompletedProcess[str]:
    """A process in which torch is imported, and perhaps something before."""
    clean = {name: text for name, text in os.environ.items() if "TORCH" not in name}
    return subprocess.run(
        [sys.executable, "-c", PROGRAM.format(first=first)],
        env={**clean, "PYTHONPATH": str(site), **environ},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )


def test_without_the_variable_nothing_is_imported(installed):
    assert after_import(installed).stdout == NOTHING
    assert after_import(installed, TORCH_DIODE_AUTOLOAD="0").stdout == NOTHING


def test_with_it_importing_torch_registers(installed):
    ended = after_import(installed, TORCH_DIODE_AUTOLOAD="1")
    assert (ended.stdout, ended.stderr) == (ON, "")
    assert after_import(installed, "import torch_diode", TORCH_DIODE_AUTOLOAD="1").stdout == ON
    off = after_import(installed, TORCH_DIODE_AUTOLOAD="1", TORCH_DIODE="0").stdout
    assert off.splitlines()[1] == "False False"


def test_torchs_own_switch_comes_first(installed):
    both = {"TORCH_DIODE_AUTOLOAD": "1", "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    assert after_import(installed, **both).stdout == "\nFalse False\n"


@pytest.mark.parametrize(
    ("first", "environ", "said"),
    [
        ("sys.modules['torch_diode'] = None", {}, "ModuleNotFoundError"),
        ("import os; os.close(2); sys.stderr = None; sys.modules['torch_diode'] = None", {}, ""),
        ("", {"TORCH_DIODE_AUTOLOAD": "ture"}, "got 'ture'; expected 1 or 0"),
        ("import warnings; warnings.simplefilter('error')", {"TORCH_DIODE_MODE": "worst"}, ""),
        ("sys.argv = []", {}, "IndexError"),
    ],
)
def test_whatever_fails_torch_is_imported(installed, first, environ, said):
    ended = after_import(installed, first, **{"TORCH_DIODE_AUTOLOAD": "1", **environ})
    assert ended.stdout.splitlines()[1] == "False False"
    assert said in ended.stderr
    assert len(ended.stderr.splitlines()) == bool(said), ended.stderr
