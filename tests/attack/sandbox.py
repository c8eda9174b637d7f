"""A directory that all cases run in, and a process that runs each in a fork of its own.

A case never leaves the directory: each of its arguments, taken for a path, must lie in it, or the
case is refused before it runs.
"""

import contextlib
import faulthandler
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.files import fuzz
from torch_diode.collection.workers.pool import ProgressMarker, WorkerDied, WorkerPool

SECONDS_A_CASE = 60
_PAUSE = 2.0
MOST_BYTES = 256 << 20
"""The greatest file a case may write."""
REFUSED = 2
_OWN = re.compile(r"\.state$|\.parts/")
"""Files that a killed command leaves for the next one, which deletes them in the end."""
_ENDS = {0: "done", 1: "failed", REFUSED: "refused", 130: "interrupted"}


class OutsideError(Exception):
    """A case has a path outside its directory."""


@dataclass(frozen=True)
class Case:
    """A command line, or a function's name with its arguments, and the files it finds."""

    group: str
    name: str
    arguments: tuple[str, ...]
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Files beside or in place of those that every case finds."""
    environ: Mapping[str, str] = field(default_factory=dict)
    run: str = "command"
    """Name of the function that runs it, in `actions`."""
    kill: tuple[float, int] | None = None
    """Seconds after which a signal is sent, and its number."""


@dataclass(frozen=True)
class Outcome:
    """The end of a case; `fault` is empty where it is one of those allowed."""

    end: str
    fault: str = ""


def check_inside(case: Case, folder: Path, home: Path) -> None:
    """Raise where an argument, a part of one, a file's name or a variable leads out of `home`."""
    texts = [*case.arguments, *case.files, *case.environ.values()]
    texts += [text[2:] for text in texts if text.startswith("-")]  # as in -o/tmp/x
    parts = [part for text in texts for part in (text, *text.replace(":", "=").split("="))]
    for part in filter(None, parts):
        resolved = Path(os.path.realpath(folder / part))
        if home not in (resolved, *resolved.parents) or part.startswith("~"):
            raise OutsideError(f"{case.group} {case.name}: {part!r} leads to {resolved}")


@contextlib.contextmanager
def sandbox() -> Iterator[Path]:
    """A new directory, deleted in the end unless a case has gone wrong in it."""
    home = Path(tempfile.mkdtemp(prefix="torch-diode-attack-")).resolve()
    yield home
    if not any(home.glob("bad-*")):
        shutil.rmtree(home)


class Attacker:
    """Runs cases in a process that has torch imported already, each in a fork of it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._pool: WorkerPool[Case, Outcome] = WorkerPool([Server(home)], fresh=True)
        self._readers: WorkerPool[Any, Any] = WorkerPool([fuzz.worker], fresh=True)

    def __enter__(self) -> "Attacker":
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.stop()
        self._readers.stop()

    def outcome(self, case: Case) -> Outcome:
        """Run a case, unless it leads out of the directory, which raises."""
        check_inside(case, self.home / "case", self.home)
        if case.run == "read":
            return self._read(case)
        self._pool.submit(0, [case])
        while not (events := list(self._pool.read(2 * SECONDS_A_CASE))):
            pass
        (event,) = events
        if isinstance(event, WorkerDied):
            return Outcome("crash", event.reason)
        return event.result

    def _read(self, case: Case) -> Outcome:
        """Read a file in a process that goes on to the next one, hundreds a second."""
        form, name = case.arguments
        path = self.home / f"bad-{len(list(self.home.glob('bad-*')))}-{name}"
        path.write_bytes(case.files[name])
        end, detail = fuzz.outcome_in(self._readers, form, path)
        if end not in ("refused", "valid"):
            return Outcome(end, detail)
        path.unlink()
        return Outcome(end)


@dataclass(frozen=True)
class Server:
    """What the process that forks is started with: the directory, with the files of `base` in it
    that every case finds."""

    home: Path

    def __call__(self, _: ProgressMarker) -> Callable[[Case], Outcome]:
        os.environ.update(
            HOME=str(self.home / "home"),
            TMPDIR=str(self.home / "tmp"),
            TORCHINDUCTOR_CACHE_DIR=str(self.home / "tmp" / "inductor"),
            TORCHINDUCTOR_COMPILE_THREADS="1",
            TORCH_DIODE="0",
            TORCH_DIODE_BUSY_CPU="1",
            OMP_NUM_THREADS="1",
            COLUMNS="200",
        )
        for name in ("home", "tmp"):
            (self.home / name).mkdir(exist_ok=True)
        tempfile.tempdir = None
        import torch._inductor.compile_fx

        import torch_diode.cli.app  # noqa: F401 - in the process, so that no fork has to import it

        torch._dynamo.reset()
        # OpenMP's threads do not survive a fork: a parallel matmul then hangs, in plain torch too.
        torch.set_num_threads(1)
        return self.outcome

    def outcome(self, case: Case) -> Outcome:
        """Run a case in a fork, and judge its end and what it left."""
        folder = self.home / "case"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.home / "base", folder, symlinks=True)
        for name, content in case.files.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(content)
        check_inside(case, folder, self.home)
        before = contents(folder)
        code, said = self._run(case, folder)
        outcome = judge(case, code, said)
        if not outcome.fault and (lost := _lost(case, before, contents(folder))):
            outcome = Outcome("lost", f"replaced or deleted: {lost}")
        if not outcome.fault and case.kill is not None:
            outcome = self._again(case, folder)
        if outcome.fault:
            kept = self.home / f"bad-{len(list(self.home.glob('bad-*')))}"
            folder.rename(kept)
            (kept / "said.txt").write_text(f"{case}\n{code}\n{said}", errors="backslashreplace")
        return outcome

    def _run(self, case: Case, folder: Path) -> tuple[int, str]:
        log = self.home / "tmp" / "said.txt"
        child = os.fork()
        if not child:
            _become(case, folder, log)
        last = time.monotonic()
        end = last + (case.kill[0] if case.kill else SECONDS_A_CASE)
        while not (ended := os.waitpid(child, os.WNOHANG))[0]:
            now = time.monotonic()
            if now - last > _PAUSE:  # this process was stopped, and the case with it
                end += now - last
            last = now
            if now > end:
                number = case.kill[1] if case.kill else signal.SIGKILL
                if not case.kill:
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(child, signal.SIGUSR1)
                    time.sleep(0.5)
                os.kill(child, number)
                end = last + SECONDS_A_CASE
                case = Case(case.group, case.name, ())  # whatever is sent next is no part of it
                if number == signal.SIGKILL:
                    ended = os.waitpid(child, 0)
                    break
            time.sleep(0.005)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # what it has started
        return os.waitstatus_to_exitcode(ended[1]), log.read_text(errors="backslashreplace")

    def _again(self, case: Case, folder: Path) -> Outcome:
        """The same command after a kill: it does its job, or says that it is done."""
        code, said = self._run(Case(case.group, case.name, case.arguments), folder)
        if code == REFUSED and "exists already" in said:
            return Outcome("finished before the kill")
        if code == 0:
            return Outcome("continued")
        return Outcome("not continued", f"exit code {code}: {said[-400:]}")


def _become(case: Case, folder: Path, log: Path) -> None:
    """Run the case in this process, which is the fork, and end it."""
    os.setsid()
    os.chdir(folder)
    resource.setrlimit(resource.RLIMIT_FSIZE, (MOST_BYTES, MOST_BYTES))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for number in (1, 2):
        os.dup2(output, number)
    # Where it and its forks are, shown shortly before they are killed for taking too long.
    faulthandler.register(signal.SIGUSR1, file=2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.stdout, sys.stderr = (os.fdopen(number, "w", closefd=False) for number in (1, 2))
    os.environ.update(case.environ)
    code: Any = 1
    try:
        from tests.attack import actions

        getattr(actions, case.run)(case)
        code = 0
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BaseException:  # noqa: BLE001 - whatever it is, it is what is looked for
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code & 255)


def judge(case: Case, code: int, said: str) -> Outcome:
    """The end of a case by its exit code and all it printed."""
    if case.kill is not None and code < 0:
        return Outcome("killed")
    if code == -signal.SIGKILL:
        return Outcome("hang", f"longer than {SECONDS_A_CASE} s: {said[-3000:]}")
    if code < 0:
        return Outcome("crash", f"signal {-code}: {said[-600:]}")
    _, mark, trace = said.partition("Traceback (most recent call last)")
    runs_a_program = {"explain", "run", "trace"} & {*case.arguments}
    if mark and not (runs_a_program and code == 1 and "/torch_diode/" not in trace):
        return Outcome("traceback", said[-1500:])
    if code not in _ENDS:
        return Outcome("exit code", f"{code}: {said[-600:]}")
    if case.run == "command" and code == REFUSED and not _is_sentence(said):
        return Outcome("unclear", said[-600:])
    return Outcome(_ENDS[code])


def _is_sentence(said: str) -> bool:
    """True for one sentence of the program's at the end, or a usage error's."""
    lines = [line for line in said.splitlines() if line.strip()]
    ours = bool(lines) and lines[-1].startswith("torch-diode: ") and len(lines[-1]) < 2000
    return ours or "Usage: " in said


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a folder by its path in it; of a link, where it leads to."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = os.fsencode(path.readlink())
        elif path.is_file():
            found[name] = path.read_bytes()
    return found


def _lost(case: Case, before: Mapping[str, bytes], after: Mapping[str, bytes]) -> list[str]:
    """The files that a case has changed, though nothing allowed it to."""
    if "--overwrite" in case.arguments:
        return []
    return [n for n, data in before.items() if after.get(n) != data and not _OWN.search(n)]
