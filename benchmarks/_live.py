"""Helpers shared by the benchmarks: run metadata, resuming, the shipped model, ratios, tables,
saving."""

from __future__ import annotations

import datetime
import hashlib
import importlib.metadata
import json
import math
import os
import platform
import shlex
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from torch_diode.files.atomic import write_text
from torch_diode.hardware import detect, known, known_names
from torch_diode.heuristics.base import Heuristic
from torch_diode.integration.hooks.fallback import DiodeWarning, Fallback
from torch_diode.model.checkpoint import load_weights
from torch_diode.model.registry import SHIPPED, shipped_model
from torch_diode.types.errors import MissingPartError
from torch_diode.types.hardware import Hardware

RESULTS = Path(__file__).parent / "results"
ALIKE = ("seed", "hardware", "gpu", "torch", "triton", "dry", "model")
"""Metadata that must be equal for a run to be resumed."""
Row = dict[str, Any]
Result = TypeVar("Result")


def results_file(name: str, aside: bool) -> Path:
    """Path of a benchmark's results; dry and partial runs do not write among the committed ones."""
    return (Path(tempfile.gettempdir()) if aside else RESULTS) / f"{name}.json"


def made_with(hardware: str, seed: int = 0) -> dict[str, Any]:
    """Metadata of a run: hardware, model, releases, date and command."""
    names = ("torch", "triton", "numpy", "pyarrow", "transformers", "timm")
    return {
        "hardware": hardware,
        "gpu": gpu_name(),
        "model": model_digest(hardware),
        **{name: found for name in names if (found := _release(name))},
        "python": platform.python_version(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0,
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
        "seed": seed,
        "commands": [command()],
    }


def command() -> str:
    """The command line without the output path."""
    words = [Path(sys.argv[0]).name, *sys.argv[1:]]
    if "--output" in words:
        place = words.index("--output")
        del words[place : place + 2]
    words = [word for word in words if not word.startswith("--output=")]
    return shlex.join(words)


def begun(
    path: Path, hardware: str, seed: int | None, dry: bool
) -> tuple[dict[str, Any], list[Row]]:
    """Metadata and rows of a file, if its run can be resumed.

    Without a seed, the file's own seed is used.
    """
    before = json.loads(path.read_text()) if path.exists() else {}
    if seed is None:
        seed = before.get("seed", 1)
    head = {**made_with(hardware, seed), "dry": dry}
    if any(before.get(name) != head[name] for name in ALIKE):
        return head, []
    head["commands"] = [*before["commands"], *head["commands"]]
    return head, before["rows"]


def model_digest(hardware: str) -> str:
    """First digits of the SHA-256 of the weights that `shipped` reads."""
    pointer = shipped_model(known(hardware) if hardware in known_names() else detect("cpu"))
    if pointer is None:
        return "none"
    weights = load_weights(pointer.path)[1]
    return hashlib.sha256(b"".join(weights[name].tobytes() for name in weights)).hexdigest()[:12]


def _release(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def gpu_name() -> str:
    """GPU name and driver release from the driver, without initialising CUDA."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, check=True, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return "none"
    return done.stdout.strip().splitlines()[0]


def shipped(hardware: Hardware) -> Heuristic:
    """The chip's shipped model, regardless of `TORCH_DIODE_MODEL`."""
    from torch_diode.integration import default_heuristic
    from torch_diode.integration.settings import Settings

    found = default_heuristic.default_heuristic(hardware, Settings(model=SHIPPED))
    if found is None:
        raise MissingPartError(f"{hardware.name}: {default_heuristic.NO_MODEL}; train one first")
    return found


def save(path: Path, data: dict[str, Any]) -> None:
    """Write JSON atomically, with one line per row of `rows`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    plain = _plain(data)
    rows = plain.pop("rows", None)
    head = json.dumps(plain, indent=1, allow_nan=False)
    if rows is not None:
        rows = [json.dumps(row, allow_nan=False) for row in rows]
        head = head.removesuffix("\n}") + ',\n "rows": [\n' + ",\n".join(rows) + "\n]}"
    write_text(path, f"{head}\n")


def _plain(value: Any) -> Any:
    """Replace NaN by null, which JSON lacks."""
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def attempted(step: Callable[[], Result]) -> tuple[Result | None, str]:
    """Run a step; print and return its error instead of raising, so that other cases continue."""
    guard = Fallback()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiodeWarning)
        result = guard.run(step)
    counters = guard.counters
    fault = next(iter([*counters.fallbacks, *counters.abstentions]), "")
    if fault:
        print(f"failed: {fault}", flush=True)
    return result, fault


def geomean(values: Sequence[float]) -> float:
    return math.exp(math.fsum(map(math.log, values)) / len(values)) if values else math.nan


def quantile(values: Sequence[float], share: float) -> float:
    """Smallest value that a given share of all values does not exceed."""
    if not values:
        return math.nan
    return sorted(values)[max(math.ceil(share * len(values)) - 1, 0)]


def as_table(rows: Sequence[Sequence[Any]]) -> str:
    """Format rows as aligned columns, a rule under the first row, numbers to four digits."""
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    lines = [
        "  ".join(
            text.ljust(width) if i == 0 else text.rjust(width)
            for i, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return "-" if math.isnan(value) else f"{value:.4g}"
    return "-" if value is None else str(value)
