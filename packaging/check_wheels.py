"""Installs the two built wheels into fresh environments and checks what a user would see.

Alone, together in either order, and after removing either one. Run by `tasks.py wheels`.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

FULL, LIB = "torch-diode", "torch-diode-lib"

PROBE = """
import sys
import torch
configs = "torch._inductor.config" in sys.modules
import torch_diode
from torch_diode import _distribution
assert "torch._inductor" not in sys.modules, "importing torch_diode imported torch._inductor"
assert configs == ("torch._inductor.config" in sys.modules)
shape = torch_diode.MMShape("mm", 512, 4096, 4096, transpose_b=True)
assert str(shape) == "mm:512x4096x4096:bfloat16:nt"
registered = torch_diode.status().enabled
assert registered == _distribution.REGISTERS_ON_IMPORT, registered
from pathlib import Path
models = (Path(torch_diode.__file__).parent / "trained_models").is_dir()
assert models == _distribution.REGISTERS_ON_IMPORT, "models are carried by the full one only"
from torch._inductor.virtualized import V
handled = "torch_diode" in type(V.choices).__module__
assert handled == _distribution.REGISTERS_ON_IMPORT, type(V.choices)
print(_distribution.NAME)
"""


class Environment:
    """A fresh virtual environment with torch, as a user has it."""

    def __init__(self, home: Path, torch: str) -> None:
        venv.create(home, with_pip=True)
        self.home = home
        self.python = home / ("Scripts" if sys.platform == "win32" else "bin") / "python"
        self.pip("install", torch)

    def pip(self, *arguments: str) -> None:
        """Run pip, quietly."""
        command = [self.python, "-m", "pip", "-q", "--disable-pip-version-check", *arguments]
        subprocess.run(command, check=True)

    def remove(self, name: str) -> None:
        """Uninstall a distribution."""
        self.pip("uninstall", "-y", name)

    def expect(self, name: str | None) -> None:
        """Check that `import torch_diode` finds the distribution of this name and works."""
        command = [self.python, "-c", PROBE]
        found = subprocess.run(command, capture_output=True, text=True, check=False, cwd=self.home)
        got = found.stdout.strip() if found.returncode == 0 else None
        if got != name:
            sys.exit(f"expected {name}, got {got}:\n{found.stdout}{found.stderr}")
        if name is not None:
            run = [self.python, "-m", "torch_diode", "status", "--json"]
            subprocess.run(run, check=True, capture_output=True, cwd=self.home)
        print(f"  ok: {name or 'no torch_diode, as it should be'}", flush=True)


def check(wheels: dict[str, Path], torch: str) -> None:
    """Every order of installing and removing."""
    full, lib = str(wheels[FULL]), str(wheels[LIB])
    with tempfile.TemporaryDirectory() as scratch:
        one = Environment(Path(scratch, "one"), torch)
        for step, act, expected in (
            ("install lib alone", lambda: one.pip("install", lib), LIB),
            ("install full beside it", lambda: one.pip("install", full), FULL),
            ("remove full", lambda: one.remove(FULL), LIB),
            ("remove lib", lambda: one.remove(LIB), None),
            ("install full alone", lambda: one.pip("install", full), FULL),
            ("install lib beside it", lambda: one.pip("install", lib), FULL),
            ("remove lib", lambda: one.remove(LIB), FULL),
        ):
            print(step, flush=True)
            act()
            one.expect(expected)


if __name__ == "__main__":
    directory = Path(sys.argv[1])
    check(
        {
            FULL: next(directory.glob("torch_diode-*.whl")),
            LIB: next(directory.glob("torch_diode_lib-*.whl")),
        },
        torch=sys.argv[2],
    )
