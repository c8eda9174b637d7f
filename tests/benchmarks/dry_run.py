"""Benchmarks run without a GPU."""

import json
from pathlib import Path
from typing import Any

from tests.scripts import run_script


def dry_run(name: str, output: Path, *options: str) -> tuple[dict[str, Any], str]:
    """Results and printed text of a benchmark with `--dry`."""
    ended = run_script(f"benchmarks/{name}", "--dry", "--output", output, *options)
    assert ended.returncode == 0, ended.stderr
    return json.loads(output.read_text()), ended.stdout
