"""Actions with several processes or threads, or many decisions, in one case."""

import gc
import multiprocessing
import os
import shutil
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch._inductor.utils import run_and_get_code

import torch_diode as td
from tests.attack.sandbox import Case
from torch_diode.candidates import candidate_space
from torch_diode.files.tables import IndexedTable, read_table, write_table
from torch_diode.hardware import detect, known
from torch_diode.heuristics import ModelHeuristic
from torch_diode.integration.deciding.decider import Decider
from torch_diode.integration.settings import Settings
from torch_diode.model.checkpoint import load_model
from torch_diode.types.table import TableEntry

PROBLEM = td.MMShape("mm", 512, 4096, 4096)
MOST_GROWTH = 64 << 20


def in_fork(action: Callable[[], object]) -> str:
    """The text of an action's result in a forked process; an error ends this one too."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        with os.fdopen(writing, "w") as pipe:
            pipe.write(str(action()))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    if os.waitpid(child, 0)[1]:
        raise SystemExit(5)
    return text


def _check(right: object, what: str) -> None:
    if not right:
        print(what)
        raise SystemExit(6)


def _prefer(template: str) -> td.Heuristic:
    def rule(problem: Any, candidates: Any) -> Any:
        return [c for c in candidates if c.template == template]

    return td.heuristic("matmul", f"prefers {template}")(rule)


def _kernel_with(heuristic: td.Heuristic | None) -> str:
    td.disable()
    if heuristic is not None:
        td.enable(heuristic)
    a, b = torch.randn(64, 96), torch.randn(96, 32)
    found, (code,) = run_and_get_code(torch.compile(torch.mm), a, b)
    _check(torch.allclose(found, a @ b, atol=1e-4), f"wrong result by {heuristic}")
    return "aten" if "extern_kernels.mm(" in code else "onednn"


def _table(template: str) -> td.LookupTable:
    problem = td.MMShape("mm", 64, 32, 96, dtype="float32")
    row = (detect("cpu").name, problem, (TableEntry(td.Candidate(template)),))
    return td.LookupTable(td.Table((row,)))


def shared_cache(_: Case) -> None:
    """Processes with other rules, tables and models, and without torch-diode, share Inductor's
    caches."""
    heuristics = [None, _prefer("onednn"), _table("aten"), _prefer("aten"), _table("onednn")]
    expected = ["aten", "onednn", "aten", "aten", "onednn"]
    heuristics.append(ModelHeuristic(load_model("m.pt")))
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(Path("private").absolute())
    expected.append(in_fork(lambda: _kernel_with(heuristics[-1])))
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(Path("shared").absolute())
    for number in (0, 1, 2, 5, 4, 3, 0, 4, 1, 5):
        found = in_fork(lambda number=number: _kernel_with(heuristics[number]))
        _check(found == expected[number], f"{heuristics[number]}: {found} of {expected}")


def _first_choices() -> list[str]:
    ranked = td.rank(PROBLEM, hardware="nvidia-h200", top=5)
    return [f"{p.candidate} {p.predicted_us!r}" for p in ranked]


def _send_choices(connection: Any) -> None:
    connection.send(str(_first_choices()))


def same_choice(_: Case) -> None:
    """Twenty forked processes and two spawned ones choose the same, also after a compile."""
    expected = str(_first_choices())
    _kernel_with(_prefer("aten"))
    found = {in_fork(_first_choices) for _ in range(20)}
    spawn = multiprocessing.get_context("spawn")
    receiving, sending = spawn.Pipe(duplex=False)
    for seed in ("1", "2"):
        os.environ["PYTHONHASHSEED"] = seed
        spawned = spawn.Process(target=_send_choices, args=(sending,))
        spawned.start()
        found.add(receiving.recv())
        spawned.join()
    _check(found == {expected}, f"{len(found)} choices")


def fork_after_compile(_: Case) -> None:
    """A process that has compiled forks, and both compile on."""
    _kernel_with(_prefer("onednn"))
    for template in ("aten", "onednn", "aten"):
        found = in_fork(lambda template=template: _kernel_with(_prefer(template)))
        _check(found == template, f"{found}, not {template}")
    _check(_kernel_with(_prefer("aten")) == "aten", "after the forks")


def threads(_: Case) -> None:
    """64 threads compile at once, and the heuristic fails in some."""

    def rule(problem: Any, candidates: Any) -> Any:
        if problem.M % 3 == 0:
            raise RuntimeError("in one thread of three")
        return list(candidates)[::-1]

    td.enable(td.heuristic("matmul")(rule))
    wrong: list[int] = []

    def compile_one(size: int) -> None:
        a, b = torch.randn(size, 16), torch.randn(16, 8)
        found = torch.compile(lambda a, b: a @ b, dynamic=False)(a, b)
        if not torch.allclose(found, a @ b, atol=1e-4):
            wrong.append(size)

    torch._dynamo.config.recompile_limit = 100
    running = [threading.Thread(target=compile_one, args=(size,)) for size in range(2, 66)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    _check(not wrong, f"wrong results: {wrong}")


def replaced_files(_: Case) -> None:
    """A model and a table are replaced by others, and by rubbish, while they are in use."""
    for original in ("m.pt", "deep.safetensors", "deep.pt"):
        name = shutil.copy(original, f"used-{original}")
        model = load_model(name)
        before = _times(model)
        Path(name).write_bytes(b"rubbish" * 1000)
        _check(_times(model) == before, name)
    for rows in (10, 120_000):  # those of the greater one are parsed when they are asked for
        write_table(_large_table(rows), "table.json")
        table = read_table("table.json")
        _check(isinstance(table, IndexedTable) == (rows > 10), "size")
        Path("table.json").write_bytes(b"rubbish" * 1000)
        problem = td.MMShape("mm", rows, 64, 64)
        _check(table.lookup("nvidia-h200", problem), "table")


def _large_table(rows: int) -> td.Table:
    config = td.TritonGEMMConfig(64, 128, 64, 8, 3)
    entries = (TableEntry(td.Candidate("triton::mm", config), 12.5),)
    problems = (td.MMShape("mm", m, 64, 64) for m in range(1, rows + 1))
    return td.Table(tuple(("nvidia-h200", problem, entries) for problem in problems))


def _times(model: Any) -> list[float]:
    chip = known(model.metadata.hardware)
    problem = td.MMShape("mm", 128, 128, 128, dtype="bfloat16")
    candidates = candidate_space(problem, chip)
    times: list[float] = model.predict_us(problem, candidates, chip)[0].tolist()
    return times


def many_decisions(_: Case) -> None:
    """Thousands of decisions about different problems, and no more memory than after the first."""
    chip = known("nvidia-h200")
    decider = Decider(Settings(heuristic=ModelHeuristic(load_model("deep.pt"))))

    def decide(first: int, last: int) -> int:
        for size in range(first, last):
            problem = td.MMShape("mm", size, 128, 64)
            space = candidate_space(problem, chip)
            ranking = decider.rank(problem, space, chip)
            decider.record_decision(problem, chip, space, ranking, [0], 1.0, "plain")
        gc.collect()
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    before = decide(1, 1000)
    grown = decide(1000, 11_000) - before
    _check(grown < MOST_GROWTH, f"{grown >> 20} MiB more after 10,000 decisions")


ACTIONS = [
    shared_cache, same_choice, fork_after_compile, threads, replaced_files, many_decisions,
]  # fmt: skip


def run(case: Case) -> None:
    """Run one of the actions."""
    sys.setswitchinterval(0.001)
    next(action for action in ACTIONS if action.__name__ == case.arguments[0])(case)
