"""Installs the two built wheels into fresh environments and checks what a user would see.

Alone, together in either order, and after removing either one. The full one is checked to have the
models of the checkout's manifest, and the commands of the README and the pages to work beside a CPU
build of torch, without triton, matplotlib or anything else that development needs. Run by
`tasks.py wheels`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.docs.pages import PAGES, blocks  # noqa: E402
from workflows.model_manifest import manifest  # noqa: E402

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


NEEDS = (
    r"triton: not installed; .* pip install triton",
    r"device: got 'cuda'; this machine has no such device",
)
"""Sentences of what cannot be had in a plain environment without a GPU."""
ABSENT = ("triton", "matplotlib", "pytest", "hypothesis", "transformers", "ray")
SHORTER = {"--num-epochs 50": "--num-epochs 2"}
"""What is said once is tried once: fewer epochs train a worse model by the same steps."""
FROM_README = """\
torch-diode validate-model --dataset $DATA --top-n-worst 3
torch-diode report --dataset $DATA --output report.html --no-default-list
torch-diode train --dataset $DATA --num-epochs 1 --hidden-dim 8 --num-layers 1
torch-diode --device cpu collector-example --num-shapes 1
torch-diode run program.py
torch-diode trace --output shapes.json program.py
torch-diode explain program.py
torch-diode explain --hardware amd-zen5 --threads 2 program.py
torch-diode --device cpu collect-shapeset --shapeset shapes.json --output cpu.parquet --libraries
torch-diode explain --hardware nvidia-h200 program.py
torch-diode tune --quick program.py
torch-diode explain program.py
torch-diode tune --list
torch-diode tune --forget all
torch-diode predict --m 64 --n 1024 --k 1024 --dtype float32 --hardware amd-zen5 --threads 2
torch-diode train --init-from shipped --dataset $DATA --model mine.pt --num-epochs 1
torch-diode --device cpu collect --output small.parquet --num-shapes 2 --max-size 64 --libraries
torch-diode collect --output large.parquet --num-shapes 1 --log-normal
"""
"""Commands that the pages show with a user's own files or with a GPU, on files that are here."""
PROGRAM = """\
import torch
layer = torch.compile(torch.nn.Linear(64, 64))
layer(torch.randn(8, 64))
"""


def check_models(environment: Environment) -> None:
    """The installed wheel has exactly the models of the checkout's manifest."""
    command = [environment.python, "-m", "torch_diode", "models", "--json"]
    told = subprocess.run(command, capture_output=True, text=True, check=True, cwd=environment.home)
    installed = {(m["name"], m["hardware"], m["sha256"]) for m in json.loads(told.stdout)["models"]}
    expected = {(m["name"], m["hardware"], m["sha256"]) for m in manifest()["models"]}
    if installed != expected:
        sys.exit(f"expected the models {sorted(expected)}, got {sorted(installed)}")
    print(f"  ok: {len(expected)} models, as in the manifest", flush=True)


def check_pages(environment: Environment) -> None:
    """Run the marked blocks of the README and the pages, then the commands they only show."""
    find = "import importlib.util as u, sys; print(*[n for n in sys.argv[1:] if u.find_spec(n)])"
    told = subprocess.run(
        [environment.python, "-c", find, *ABSENT],
        capture_output=True,
        text=True,
        check=True,
        cwd=environment.home,
    )
    if told.stdout.strip():
        sys.exit(f"expected a plain environment, got {told.stdout.strip()} in it")
    things = {name for name in ("jq",) if shutil.which(name)}
    for page in PAGES:
        marked = [block for block in blocks(page) if block.applies(things)]
        with tempfile.TemporaryDirectory() as place:
            for number, block in enumerate(marked):
                script = Path(place).parent / f"{Path(place).name}-{number}"
                code = block.code
                for text, shorter in SHORTER.items():
                    code = code.replace(text, shorter)
                run_script(environment, code, block.language, Path(place), script)
        if marked:
            print(f"  ok: {page}, {len(marked)} blocks", flush=True)
    with tempfile.TemporaryDirectory() as place:
        Path(place, "program.py").write_text(PROGRAM, encoding="utf-8")
        for line in FROM_README.splitlines():
            run_script(environment, line, "bash", Path(place), Path(f"{place}.sh"))
            print(f"  ok: {line}", flush=True)


def run_script(
    environment: Environment, code: str, language: str, place: Path, script: Path
) -> None:
    """Run a block as a reader would: it has to work, or to say that it needs triton or a GPU."""
    script.write_text(code, encoding="utf-8")
    own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    own["PATH"] = f"{environment.python.parent}{os.pathsep}{own['PATH']}"
    own |= {"CHECKOUT": str(ROOT), "TORCH_DIODE_BUSY_CPU": "1"}
    own["TORCH_DIODE_HOME"] = str(environment.home / "data")
    own["DATA"] = str(ROOT / "diode_datasets/matmul/nvidia-h200/validation/full-2.parquet")
    command = [environment.python] if language == "python" else ["bash", "-euo", "pipefail"]
    ended = subprocess.run(
        [*command, script], cwd=place, env=own, capture_output=True, text=True, check=False
    )
    script.unlink()
    refused = ended.returncode == 2 and any(re.search(text, ended.stderr) for text in NEEDS)
    if ended.returncode and (not refused or "Traceback" in ended.stderr):
        sys.exit(f"failed:\n{code}\n{ended.stdout}\n{ended.stderr}")


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
        print("the commands of the README and the pages", flush=True)
        check_models(one)
        check_pages(one)


if __name__ == "__main__":
    directory = Path(sys.argv[1])
    check(
        {
            FULL: next(directory.glob("torch_diode-*.whl")),
            LIB: next(directory.glob("torch_diode_lib-*.whl")),
        },
        torch=sys.argv[2],
    )
