#!/usr/bin/env python3
"""The project's tasks: `python3 tasks.py demo`, `test`, `lint` and others, see `--help`.

Needs Python 3.10 and nothing else: it makes its own environment in .venv, once, and installs there
what the project needs. Set TORCH_DIODE_PYTHON to an interpreter that has everything already (a
cluster without a network) and it uses that instead.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent
TORCH = "torch==2.13.0"
RELEASES = ("2.9.1", "2.10.0", "2.11.0", "2.12.1", "2.13.0", "2.14.1", "2.15.0")


def environment(extras: str = "dev") -> Path:
    """The environment's interpreter, made and filled the first time and after a change."""
    given = os.environ.get("TORCH_DIODE_PYTHON")
    if given:
        return Path(given)
    return make_environment(ROOT / ".venv", TORCH, ["-e", f"{ROOT}[{extras}]"])


def make_environment(home: Path, torch: str, packages: Sequence[str]) -> Path:
    """An environment with this torch and these packages; nothing to do if it is there."""
    python = home / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    recipe = [torch, *packages, (ROOT / "pyproject.toml").read_text(encoding="utf-8")]
    stamp = home / f".{hashlib.sha256(chr(0).join(recipe).encode()).hexdigest()[:16]}"
    if stamp.exists():
        return python
    print(f"Setting up {home} (once; a few minutes)", flush=True)
    if not python.exists():
        venv.create(home, with_pip=True)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    # torch first and pinned: asking for it together with packages that need "any torch" may
    # bring several gigabytes of another build.
    run([*pip, torch])
    run([*pip, *packages])
    stamp.touch()
    return python


def run(command: Sequence[str | Path], **environ: str) -> None:
    """Run a command from the project's root; stop with its exit code if it fails."""
    finished = subprocess.run(
        [str(part) for part in command], cwd=ROOT, env={**os.environ, **environ}, check=False
    )
    if finished.returncode:
        sys.exit(finished.returncode)


def demo(_: Sequence[str]) -> None:
    """Show the main job."""
    run([environment("demo"), "workflows/demo.py"])


def test(arguments: Sequence[str]) -> None:
    """Run the tests; arguments go to pytest."""
    install_browser()
    run([environment(), "-m", "pytest", "-n", "auto", *arguments])


def install_browser() -> None:
    """Get the browser the report is tested in, where that can be done without asking: as root,
    with apt. Elsewhere, or if it fails, those tests are skipped and say why."""
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    if shutil.which("chromedriver") or not is_root or not shutil.which("apt-get"):
        return
    print("Installing chromium and chromium-driver for the report's tests (once)", flush=True)
    install = ["install", "-y", "-qq", "--no-install-recommends", "chromium", "chromium-driver"]
    for arguments in (["update", "-qq"], install):
        command = ["apt-get", *arguments]
        environ = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(command, env=environ, check=False, capture_output=True, timeout=300)


def lint(_: Sequence[str]) -> None:
    """Lint, format check, strict types."""
    python = environment()
    run([python, "-m", "ruff", "check", "."])
    run([python, "-m", "ruff", "format", "--check", "."])
    run([python, "-m", "mypy"])


def docs(_: Sequence[str]) -> None:
    """Build the documentation into docs/_build; a warning is an error."""
    python = environment("dev,docs")
    run([python, "-m", "sphinx", "-W", "--keep-going", "-q", "docs", "docs/_build"])
    print(f"Built {ROOT / 'docs/_build/index.html'}")


def wheels(_: Sequence[str]) -> None:
    """Build both distributions into dist/ and try them in fresh environments."""
    python = environment()
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    for project in (".", "packaging/lib"):
        run([python, "-m", "build", "--wheel", "--no-isolation", "--outdir", "dist", project])
    run([python, "packaging/check_wheels.py", "dist", TORCH])


def bench(arguments: Sequence[str]) -> None:
    """Run the benchmarks (all, or those named) and write their results."""
    python = environment("dev,bench")
    last = ("headroom", "front_page")  # they start from the others' results
    every = {file.stem for file in (ROOT / "benchmarks").glob("[a-z]*.py")}
    names = arguments or [*sorted(every.difference(last)), *last]
    for name in names:
        print(f"== {name}", flush=True)
        run([python, f"benchmarks/{name}.py"])


def compat(arguments: Sequence[str]) -> None:
    """Run the integration tests with every supported torch release (or those named)."""
    outcomes: dict[str, str] = {}
    for release in arguments or RELEASES:
        packages = [
            "-e",
            f"{ROOT}",
            "hatchling",
            "pytest",
            "pytest-timeout",
            "pytest-xdist",
            "hypothesis",
            "triton",
        ]
        python = make_environment(ROOT / ".venvs" / release, f"torch=={release}", packages)
        command = [python, "-m", "pytest", "tests/integration", "tests/heuristics"]
        finished = subprocess.run(
            [str(part) for part in command], cwd=ROOT, check=False, capture_output=True, text=True
        )
        print(finished.stdout[-4000:] if finished.returncode else "", end="", flush=True)
        lines = finished.stdout.strip().splitlines() or [finished.stderr[-200:]]
        outcomes[release] = lines[-1]
        print(f"{release:8} {outcomes[release]}", flush=True)
    print("\ntorch    integration tests")
    for release, outcome in outcomes.items():
        print(f"{release:8} {outcome}")
    if any("failed" in o or "error" in o or "passed" not in o for o in outcomes.values()):
        sys.exit(1)


def attack(arguments: Sequence[str]) -> None:
    """Attack the program and its compiles (`--minutes N`)."""
    run([environment(), "-m", "tests.attack", *arguments])


TASKS: dict[str, Callable[[Sequence[str]], None]] = {
    task.__name__: task for task in (demo, test, attack, lint, docs, wheels, bench, compat)
}


def main() -> None:
    """Run the task named on the command line."""
    if sys.version_info < (3, 10):  # noqa: UP036 - this file is what an older Python meets first
        sys.exit("torch-diode needs Python 3.10 or later; this is " + sys.version.split()[0])
    listed = "\n".join(f"  {name:8} {task.__doc__}" for name, task in TASKS.items())
    parser = argparse.ArgumentParser(
        prog="tasks.py",
        description=f"The project's tasks:\n{listed}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("task", choices=list(TASKS), metavar="task")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="passed to the task")
    chosen = parser.parse_args()
    TASKS[chosen.task](chosen.arguments)


if __name__ == "__main__":
    main()
