"""Whole models compiled with and without torch-diode, by mode. Needs a GPU.

    python benchmarks/models_live.py --minutes 8 [--models llama bert] [--modes reduce-overhead]
    python benchmarks/models_live.py --dry --minutes 2      # no GPU: tiny, on the CPU, no Inductor

Architectures of real widths with random weights: a Llama-style decoder (prefill and decode), BERT,
ViT, a DiT, a recommender, and one training step. Each is compiled from empty caches in the modes
`reduce-overhead`, `max-autotune` and `default`, plain and with torch-diode. Recorded: seconds of
the first call, GPU milliseconds of a call with a full queue, peak memory, the relative difference
to eager's output, torch-diode's decisions and max-autotune's picks. The most important cases run
first; results are saved as they come, and a file of the same seed, machine and model is resumed.

Inductor tunes its pointwise kernels and reductions again in each compile, with varying results: one
GELU took 54 us in one compile and 71 in the next, so a model whose matmuls all stay ATen's differs
by 1.5% between compiles. What is compared most closely is therefore compiled a second time, plain
and with torch-diode, with a shared cache per mode, so that common kernels are tuned once, and then
called in turn: a model that heats the chip slows down by 3% within a minute. GPU times are compared
by those, compile seconds by the first compile from empty caches, torch-diode's between two of plain
torch, since a process compiles faster the second time. Plain max-autotune takes so long that its
first compile is the one called in turn, its kernels compiled by threads: torch 2.11 recompiles with
Triton's ptxas what its compile workers compiled with torch's, one by one (104 s for BERT). The
noise is the difference between two compiles of one kind, or half the interquartile range of the
ratios if that is larger.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

# torch-diode is enabled explicitly below.
os.environ["TORCH_DIODE"] = "0"

import torch
from _live import attempted, begun, results_file, save
from _models import MODELS, Case, build
from _models_calls import difference, kept, step_of
from _models_clock import gpu_ms
from _models_picks import picks
from _models_ratios import IN_TURN, Row, show, summary
from torch import Tensor

from workflows.measuring.worker_state import seconds_alive

MODES = ("reduce-overhead", "max-autotune", "default")
STAGES = (
    (("reduce-overhead", False), ("reduce-overhead", True)),
    ((IN_TURN, True),),
    (("max-autotune", True),),
    (("default", False), ("default", True)),
)
"""With torch-diode or not; the most important first."""
TAKES_TURNS = ("reduce-overhead", "max-autotune")
CALLS = {"reduce-overhead": 10, "max-autotune": 10, "default": 3}
"""Calls per round; without CUDA graphs, more would not fit into the queue."""
ROUNDS, TURNS = 7, 15
EXPECTED_S = {"reduce-overhead": 12.0, "default": 12.0, "max-autotune": 50.0}
"""Time limit of a case; a case starts only if that much time is left."""


@contextlib.contextmanager
def shared_cache(folder: Path, mode: str) -> Iterator[None]:
    """Use Inductor's and Triton's caches in a folder, with kernels named by content and not by
    number."""
    import torch._inductor.config as inductor_config
    from torch._inductor.utils import clear_caches

    clear_caches()
    folders = {"TORCHINDUCTOR_CACHE_DIR": folder, "TRITON_CACHE_DIR": folder / "triton"}
    changes: dict[str, Any] = {"triton.unique_kernel_names": False}
    if mode == "max-autotune":
        changes["compile_threads"] = 1  # processes; a list's kernels are compiled by threads then
    with contextlib.ExitStack() as stack:
        stack.enter_context(inductor_config.patch(changes))
        stack.enter_context(mock.patch.dict(os.environ, {n: str(p) for n, p in folders.items()}))
        yield


def measured(name: str, mode: str, diode: bool, given: argparse.Namespace) -> list[Row]:
    """One model and variant, from empty caches."""
    from torch._inductor.utils import fresh_cache

    case = _afresh(name, given)
    with fresh_cache():
        row, call = _first_calls(name, case, mode, diode, given.dry)
        row |= _peak(call, given.dry)
        taken, waited = _rounds([call], CALLS[mode], ROUNDS, given.dry)
    return [row | _times(taken[0], waited[0])]


def in_turn(name: str, given: argparse.Namespace) -> list[Row]:
    """One model in every mode that is called in turn, plain and with torch-diode."""
    case = _afresh(name, given)
    rows: list[Row] = []
    calls: list[Callable[[], list[Tensor]]] = []
    for mode in given.turns:
        with shared_cache(given.shared / f"{name} {mode}".replace("/", "-"), mode):
            for diode in (False, True):
                row, call = _first_calls(name, case, mode, diode, given.dry)
                rows.append(row | {IN_TURN: True})
                calls.append(call)
    taken, waited = _rounds(calls, CALLS["reduce-overhead"], TURNS, given.dry)
    plain = {row["mode"]: times for row, times in zip(rows, taken, strict=True) if not row["diode"]}
    for row, own, late in zip(rows, taken, waited, strict=True):
        row |= _times(own, late)
        if row["diode"]:
            row["over"] = {mode: _ratio(own, times) for mode, times in plain.items()}
    return rows


def _ratio(own: list[float], plain: list[float]) -> list[float]:
    """Median ratio of paired rounds, and half the interquartile range."""
    low, middle, high = statistics.quantiles([a / b for a, b in zip(own, plain, strict=True)], n=4)
    return [round(middle, 5), round((high - low) / 2, 5)]


def _peak(call: Callable[[], Any], dry: bool) -> Row:
    """Torch's reserved GPU memory in a call, CUDA graph pools included."""
    if dry:
        return {}
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    call()
    return {"peak_mb": round(torch.cuda.max_memory_reserved() / 2**20, 1)}


def _afresh(name: str, given: argparse.Namespace) -> Case:
    """A model with nothing compiled yet."""
    from torch_diode.integration import registration

    torch.compiler.reset()
    registration.disable()
    gc.collect()
    if not given.dry:
        torch.cuda.empty_cache()
    device = torch.device("cpu" if given.dry else "cuda")
    dtype = torch.float32 if given.dry else torch.bfloat16
    return build(name, device, dtype, given.seed, given.dry)


def _first_calls(
    name: str, case: Case, mode: str, diode: bool, dry: bool
) -> tuple[Row, Callable[[], list[Tensor]]]:
    """Compile, record and compare with eager; return the results and the call."""
    from torch_diode.integration import registration

    expected = kept(step_of(case)())
    row: Row = {"model": name, "mode": mode, "diode": diode}
    with contextlib.ExitStack() as stack:
        if mode == "max-autotune" and not dry:
            row["picks"] = stack.enter_context(picks())
        if diode:
            registration.enable()
            stack.callback(registration.disable)
        before = registration.status().counters
        module = _compiled(case.module, mode, diode, dry)
        step = step_of(Case(module, case.inputs, case.train))

        def call() -> list[Tensor]:
            torch.compiler.cudagraph_mark_step_begin()
            return step()

        if not dry:
            torch.cuda.synchronize()
        begun = time.perf_counter()
        first = call()
        if not dry:
            torch.cuda.synchronize()
        row["compile_s"] = round(time.perf_counter() - begun, 5)
        row["difference"] = difference(kept(first), expected)
        del first
        for _ in range(3):  # the graph is recorded, then replayed
            call()
        row["difference"] = max(row["difference"], difference(kept(call()), expected))
        if diode:
            after = registration.status().counters
            made = after.decisions - before.decisions
            row["decisions"] = _decisions(registration.explain()[-made:] if made else [])
            row["fallbacks"] = dict(after.fallbacks - before.fallbacks)
            row["abstentions"] = dict(after.abstentions - before.abstentions)
    return row, call


def _compiled(module: torch.nn.Module, mode: str, diode: bool, dry: bool) -> Any:
    if dry:
        backend = "aot_eager_decomp_partition" if diode else "aot_eager"
        return torch.compile(module, backend=backend, dynamic=False)
    options = dict(torch._inductor.list_mode_options(mode))
    if diode:
        # The default; but different options make Dynamo keep both variants of one model.
        options["debug"] = False
    return torch.compile(module, options=options, dynamic=False)


def _rounds(
    ways: list[Callable[[], Any]], calls: int, rounds: int, dry: bool
) -> tuple[list[list[float]], list[int]]:
    if not dry:
        return gpu_ms(ways, calls, rounds)
    taken: list[list[float]] = [[] for _ in ways]
    for _ in range(2):
        for number, call in enumerate(ways):
            begun = time.perf_counter()
            call()
            taken[number].append((time.perf_counter() - begun) * 1e3)
    return taken, [0] * len(ways)


def _times(rounds: list[float], waited: int) -> Row:
    """Median, half the spread, and the number of rounds with stalls."""
    return {
        "gpu_ms": round(statistics.median(rounds), 5),
        "spread_ms": round((max(rounds) - min(rounds)) / 2, 5),
        "waited": waited,
    }


def _decisions(found: list[Any]) -> list[Row]:
    """Decisions with their counts."""
    counted = Counter((d.problem.key, str(d.winner.candidate), d.kept, d.epilogue) for d in found)
    return [
        {"problem": problem, "chosen": chosen, "kept": kept, "then": then, "count": count}
        for (problem, chosen, kept, then), count in counted.items()
    ]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=8, help="start no case after that")
    parser.add_argument("--models", nargs="*", default=[], help="prefixes of their names")
    parser.add_argument("--modes", nargs="*", default=list(MODES), choices=MODES)
    parser.add_argument(
        "--problems", type=int, default=len(MODELS), help="maximum number of models"
    )
    parser.add_argument("--seed", type=int, help="seed of the weights; default: the file's")
    parser.add_argument("--hardware", default="nvidia-h200")
    parser.add_argument("--dry", action="store_true", help="tiny models on the CPU, no Inductor")
    parser.add_argument(
        "--output", type=Path, help="default: results/models_live.json, except with --dry"
    )
    given = parser.parse_args()
    given.output = given.output or results_file("models_live", given.dry)
    if not given.dry and not torch.cuda.is_available():
        print("skipped: needs a GPU")
        return 0
    given.turns = [mode for mode in TAKES_TURNS if mode in given.modes]
    deadline = time.monotonic() - seconds_alive() + 60 * given.minutes
    head, before = begun(given.output, given.hardware, given.seed, given.dry)
    given.seed = head["seed"]
    rows = [row for row in before if "fault" not in row]
    names = [n for n in MODELS if not given.models or n.startswith(tuple(given.models))]
    if not given.dry:
        warm_up()
    with tempfile.TemporaryDirectory() as folder:
        given.shared = Path(folder)
        for name, mode, diode in in_order(names[: given.problems]):
            if not _wanted(name, mode, diode, rows, given):
                continue
            if not given.dry and time.monotonic() + _expected_s(mode, given) > deadline:
                continue
            found = _guarded(name, mode, diode, given)
            if mode == IN_TURN and not any("fault" in row for row in found):
                rows = [row for row in rows if row["model"] != name or IN_TURN not in row]
            rows += found
            save(given.output, {**head, "summary": summary(rows), "rows": rows})
    show(rows)
    return 0


def _wanted(name: str, mode: str, diode: bool, rows: list[Row], given: argparse.Namespace) -> bool:
    """Whether a case was requested and is not in the file yet."""
    own = [row for row in rows if row["model"] == name]
    if mode == IN_TURN:
        return not {row["mode"] for row in own if IN_TURN in row}.issuperset(given.turns)
    there = {(row["mode"], row["diode"]) for row in own if IN_TURN not in row}
    return mode in given.modes and (mode, diode) not in there


def _expected_s(mode: str, given: argparse.Namespace) -> float:
    if mode != IN_TURN:
        return EXPECTED_S[mode]
    return 2 * sum(EXPECTED_S[mode] for mode in given.turns)


def in_order(names: list[str]) -> Iterator[tuple[str, str, bool]]:
    """All cases, the most important first."""
    for stage in STAGES:
        for name in names:
            for mode, diode in stage:
                yield name, mode, diode


def warm_up() -> None:
    """Compile once: a first compile includes imports, the model and starting compile workers."""
    from torch._inductor.utils import fresh_cache

    from torch_diode.integration import registration

    x = torch.randn(256, 512, device="cuda", dtype=torch.bfloat16)
    for diode, mode in ((False, None), (True, None), (False, "max-autotune-no-cudagraphs")):
        torch.compiler.reset()
        with fresh_cache(), contextlib.ExitStack() as stack:
            if diode:
                registration.enable()
                stack.callback(registration.disable)
            torch.compile(lambda x: torch.relu(x @ x.t()), mode=mode)(x)
    torch.cuda.synchronize()


def _guarded(name: str, mode: str, diode: bool, given: argparse.Namespace) -> list[Row]:
    """Run one case; an error is recorded as its result."""
    begun = time.monotonic()
    found, fault = attempted(
        lambda: in_turn(name, given) if mode == IN_TURN else measured(name, mode, diode, given)
    )
    failed: Row = {"model": name, "mode": mode, "diode": diode, "fault": fault}
    rows = found or [failed | {IN_TURN: True} if mode == IN_TURN else failed]
    results = " and ".join(str(row.get("gpu_ms", row.get("fault"))) for row in rows)
    spent = time.monotonic() - begun
    print(f"{name}, {mode}, diode {diode}: {results} ({spent:.0f} s)", flush=True)
    return rows


if __name__ == "__main__":
    sys.exit(main())
