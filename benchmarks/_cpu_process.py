"""Process of a variant, as the benchmark sees it: questions and answers as lines of JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

Row = dict[str, Any]
WORKER = Path(__file__).with_name("_cpu_worker.py")
MOST_S = 300.0
"""Limit of one answer; the slowest seen, max-autotune of a model, takes a quarter of it."""


class VariantProcess:
    """A worker with empty caches of its own; `fault` says why it answers no more."""

    def __init__(
        self, arguments: Sequence[str], threads: int, python: str | Path = sys.executable
    ) -> None:
        self.fault = ""
        self._folder = tempfile.TemporaryDirectory()
        self._errors = Path(self._folder.name) / "stderr"
        environment = {
            **os.environ,
            "TORCH_DIODE": "0",  # a worker turns it on itself
            "TORCHINDUCTOR_CACHE_DIR": f"{self._folder.name}/caches",
            "OMP_NUM_THREADS": str(threads),
        }
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                [python, WORKER, *arguments, "--threads", str(threads)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=environment,
            )

    def ask(self, request: Row) -> Row | None:
        """Send a request and wait for the answer; None if the process fails."""
        assert self._process.stdin is not None
        if self.fault or self._process.poll() is not None:
            return self._failed()
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return self.answer()

    def answer(self) -> Row | None:
        """Wait for a line; None if the process fails."""
        assert self._process.stdout is not None
        limit = threading.Timer(MOST_S, self._process.kill)
        limit.start()
        line = self._process.stdout.readline()
        limit.cancel()
        return dict(json.loads(line)) if line else self._failed()

    def _failed(self) -> None:
        if not self.fault:
            code = self._process.wait()
            lines = self._errors.read_text(errors="replace").split("\n")
            said = [line for line in lines if line.strip() and not line.startswith(" ")]
            self.fault = f"{said[-1] if said else 'no message'} (exit code {code})"[:400]

    def __enter__(self) -> VariantProcess:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.communicate()
        self._folder.cleanup()
