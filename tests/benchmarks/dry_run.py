"""Benchmarks run as a person would, without a GPU."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def dry_run(name: str, output: Path, *options: str) -> tuple[dict[str, Any], str]:
    """What a benchmark writes and prints in its dry form."""
    command = [sys.executable, str(ROOT / "benchmarks" / name), "--dry", "--output", str(output)]
    done = subprocess.run(
        [*command, *options], capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stderr
    return json.loads(output.read_text()), done.stdout
