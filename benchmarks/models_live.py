"""Whole models compiled with and without torch-diode, by mode. Needs a GPU.

    python benchmarks/models_live.py --minutes 8 [--models llama bert] [--modes reduce-overhead]
    python benchmarks/models_live.py --dry --minutes 2      # no GPU: tiny, on the CPU, no Inductor

Architectures of real widths with random weights: a Llama-style decoder (prefill and decode), BERT,
ViT, a DiT, a recommender, and one training step. Each is compiled from empty caches in the modes
`reduce-overhead`, `max-autotune` and `default`, plain and with torch-diode. Noted: seconds of the
first call, GPU milliseconds of a call with the GPU's queue kept full, peak memory, the relative
difference to eager's output, and what torch-diode chose. The most telling cases come first;
results are saved as they come, and a file of the same seed is gone on with.

Inductor tunes its pointwise kernels and reductions anew in each compile, and does not always come
to the same: one GELU was seen to take 54 us in one compile and 71 in the next. So a model whose
matmuls all stay ATen's differs by 1.5% from compile to compile. What is compared most closely is
therefore compiled a second time, both ways with one cache between them, so that the kernels they
have in common are tuned once: that is what GPU times are compared by, and compile seconds by the
first time, from empty caches. The noise is how far two compiles of one kind are apart.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import math
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

# torch-diode is on where this says so, and nowhere else.
os.environ["TORCH_DIODE"] = "0"

import torch
from _live import RESULTS, as_table, attempted, geomean, made_with, save
from _models import MODELS, Case, build
from torch import Tensor

from torch_diode.collection.started import seconds_alive

MODES = ("reduce-overhead", "max-autotune", "default")
STAGES = (
    (("reduce-overhead", False, 0), ("reduce-overhead", True, 0)),
    (("reduce-overhead", True, 1), ("reduce-overhead", False, 1)),
    (("max-autotune", True, 0),),
    (("max-autotune", False, 0),),
    (("default", False, 0), ("default", True, 0)),
)
"""With torch-diode or not, and which time it is: the second shares its caches. What its claims rest
on comes first, and what is compared stands together, so that a drifting clock reaches both."""
CALLS = {"reduce-overhead": 10, "max-autotune": 10, "default": 3}
"""In a row; without CUDA graphs, more would not fit into the queue."""
ROUNDS, LATE = 7, 4
EXPECTED_S = {"reduce-overhead": 12.0, "default": 12.0, "max-autotune": 30.0}
"""What a case may take at least; one is begun only if that is left."""
AUTOTUNE_S = 100.0

Row = dict[str, Any]


def step_of(case: Case) -> Callable[[], list[Tensor]]:
    """One call: the output, or the gradients of a training step."""
    module, inputs = case.module, case.inputs

    def train() -> list[Tensor]:
        module(*inputs).backward()
        found = [p.grad for p in module.parameters() if p.grad is not None]
        for parameter in module.parameters():
            parameter.grad = None
        return found

    def infer() -> list[Tensor]:
        with torch.no_grad():
            return [module(*inputs)]

    return train if case.train else infer


def kept(values: list[Tensor]) -> list[Tensor]:
    """Out of the way of a CUDA graph's next replay, and few enough to keep."""
    return [value.detach().float().clone() for value in values[:8]]


def difference(got: list[Tensor], expected: list[Tensor]) -> float:
    """The largest ‖got − expected‖ / ‖expected‖ of all outputs."""
    pairs = zip(got, expected, strict=True)
    return max(float((a - b).norm() / b.norm().clamp_min(1e-12)) for a, b in pairs)


def gpu_ms(call: Callable[[], Any], calls: int) -> Row:
    """Of one call, with the GPU never waiting for the CPU; half the spread of the rounds; and how
    many rounds the CPU was late for.

    The GPU sleeps while the calls are queued. Where it was awake before the last was in, the round
    is taken again with twice the sleep, a few times: a queue that is full waits in any case.
    """
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    begun = time.perf_counter()
    for _ in range(calls):
        call()
    cycles = int((time.perf_counter() - begun) * 4e9) + 1_000_000
    taken: list[float] = []
    late = 0
    while len(taken) < ROUNDS:
        torch.cuda.synchronize()
        torch.cuda._sleep(cycles)
        start.record()
        for _ in range(calls):
            call()
        end.record()
        behind = start.query()
        torch.cuda.synchronize()
        if behind and late < LATE:
            cycles, late = 2 * cycles, late + 1
            continue
        taken.append(start.elapsed_time(end) / calls)
    return {
        "gpu_ms": round(statistics.median(taken), 5),
        "spread_ms": round((max(taken) - min(taken)) / 2, 5),
        "late": late,
    }


@contextlib.contextmanager
def shared_cache(folder: Path) -> Iterator[None]:
    """Inductor's and Triton's caches in a folder, by what a kernel does and not by its number."""
    import torch._inductor.config as inductor_config
    from torch._inductor.utils import clear_caches

    clear_caches()
    folders = {"TORCHINDUCTOR_CACHE_DIR": folder, "TRITON_CACHE_DIR": folder / "triton"}
    with contextlib.ExitStack() as stack:
        stack.enter_context(inductor_config.patch({"triton.unique_kernel_names": False}))
        stack.enter_context(mock.patch.dict(os.environ, {n: str(p) for n, p in folders.items()}))
        yield


def measured(name: str, mode: str, diode: bool, again: int, given: argparse.Namespace) -> Row:
    """One model, one way: from nothing, or with what the other way has tuned."""
    from torch._inductor.utils import fresh_cache

    from torch_diode.integration import registration

    device = torch.device("cpu" if given.dry else "cuda")
    dtype = torch.float32 if given.dry else torch.bfloat16
    torch.compiler.reset()
    gc.collect()
    if not given.dry:
        torch.cuda.empty_cache()
    case = build(name, device, dtype, given.seed, given.dry)
    expected = kept(step_of(case)())
    row: Row = {"model": name, "mode": mode, "diode": diode, "again": again}
    registration.disable()
    caches = shared_cache(given.shared / name.replace("/", "-")) if again else fresh_cache()
    with caches, contextlib.ExitStack() as stack:
        if diode:
            registration.enable()
            stack.callback(registration.disable)
        before = registration.status().counters
        module = _compiled(case.module, mode, given.dry)
        step = step_of(Case(module, case.inputs, case.train))

        def call() -> list[Tensor]:
            torch.compiler.cudagraph_mark_step_begin()
            return step()

        begun = time.perf_counter()
        first = call()
        if not given.dry:
            torch.cuda.synchronize()
        row["compile_s"] = round(time.perf_counter() - begun, 3)
        row["difference"] = difference(kept(first), expected)
        del first
        for _ in range(3):  # the graph is recorded, then replayed
            call()
        row |= _run(call, mode, given.dry)
        row["difference"] = max(row["difference"], difference(kept(call()), expected))
        if diode:
            after = registration.status().counters
            made = after.decisions - before.decisions
            row["decisions"] = _decisions(registration.explain()[-made:] if made else [])
            row["fallbacks"] = dict(after.fallbacks - before.fallbacks)
            row["abstentions"] = dict(after.abstentions - before.abstentions)
    return row


def _compiled(module: torch.nn.Module, mode: str, dry: bool) -> Any:
    if dry:
        return torch.compile(module, backend="aot_eager", dynamic=False)
    return torch.compile(module, mode=None if mode == "default" else mode, dynamic=False)


def _run(call: Callable[[], Any], mode: str, dry: bool) -> Row:
    if dry:
        begun = time.perf_counter()
        call()
        taken = (time.perf_counter() - begun) * 1e3
        return {"gpu_ms": taken, "spread_ms": 0.0, "peak_mb": 0.0}
    torch.cuda.reset_peak_memory_stats()
    row = gpu_ms(call, CALLS[mode])
    row["peak_mb"] = round(torch.cuda.max_memory_allocated() / 2**20, 1)
    row["reserved_mb"] = round(torch.cuda.max_memory_reserved() / 2**20, 1)
    return row


def _decisions(found: list[Any]) -> list[Row]:
    """What was chosen, the same ones counted."""
    counted = Counter((d.problem.key, str(d.winner.candidate), d.kept, d.epilogue) for d in found)
    return [
        {"problem": problem, "chosen": chosen, "kept": kept, "then": then, "count": count}
        for (problem, chosen, kept, then), count in counted.items()
    ]


# What the rows come to


def summary(rows: list[Row]) -> dict[str, Any]:
    """Ratios by model, and their geometric means."""
    models: dict[str, Row] = {}
    for name in MODELS:
        found = [row for row in rows if row["model"] == name and "gpu_ms" in row]
        own, plain, few, tuned = (
            _kind([r for r in found if (r["mode"], r["diode"]) == (mode, diode)], _paired(found))
            for mode in ("reduce-overhead", "max-autotune")
            for diode in (True, False)
        )
        if own is None or plain is None:
            continue
        best = min(r["gpu_ms"] for r in (plain, tuned) if r is not None)
        models[name] = {
            "gpu over the better": own["gpu_ms"] / best,
            "gpu over reduce-overhead": own["gpu_ms"] / plain["gpu_ms"],
            "noise": max(own["noise"], plain["noise"]),
            "gpu over max-autotune": own["gpu_ms"] / tuned["gpu_ms"] if tuned else None,
            "compile over reduce-overhead": own["compile_s"] / plain["compile_s"],
            "max-autotune compile over": tuned["compile_s"] / own["compile_s"] if tuned else None,
            "tuned: gpu over the better": few["gpu_ms"] / best if few else None,
        }
    columns = next(iter(models.values()), {})
    means = {
        column: geomean([m[column] for m in models.values() if m[column] is not None])
        for column in columns
        if column != "noise"
    }
    return {"models": models, "geomean": means}


def _paired(rows: list[Row]) -> bool:
    """Whether both ways of a model were compiled with one cache between them."""
    return len({row["diode"] for row in rows if row.get("again")}) == 2


def _kind(rows: list[Row], paired: bool) -> dict[str, float] | None:
    """Of compiles of one kind: the GPU time of the last where that can be compared, else of the
    first; the seconds of the first; and how far apart their GPU times are as a share, which is not
    a number where there was one."""
    if not rows:
        return None
    rows = sorted(rows, key=lambda row: row.get("again", 0))
    times = [row["gpu_ms"] for row in rows]
    return {
        "gpu_ms": times[-1] if paired else times[0],
        "compile_s": rows[0]["compile_s"],
        "noise": max(times) / min(times) - 1 if len(times) > 1 else math.nan,
    }


def show(rows: list[Row]) -> None:
    """All cases, then the ratios."""
    columns = ("gpu_ms", "spread_ms", "compile_s", "peak_mb", "difference")
    table: list[list[Any]] = [["model", "mode", "torch-diode", *columns]]
    for row in rows:
        cells = [row.get(column) for column in columns]
        table.append([row["model"], row["mode"], "yes" if row["diode"] else "no", *cells])
    print(as_table(table))
    found = summary(rows)
    if found["models"]:
        names = list(next(iter(found["models"].values())))
        lines = [[name, *(ratios[n] for n in names)] for name, ratios in found["models"].items()]
        means: list[Any] = ["geomean", *(found["geomean"].get(n) for n in names)]
        print()
        print(as_table([["torch-diode, reduce-overhead", *names], *lines, means]))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=8, help="begin nothing after that")
    parser.add_argument("--models", nargs="*", default=[], help="words their names begin with")
    parser.add_argument("--modes", nargs="*", default=list(MODES), choices=MODES)
    parser.add_argument("--problems", type=int, default=len(MODELS), help="models at most")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--hardware", default="nvidia-h200")
    parser.add_argument("--dry", action="store_true", help="tiny models on the CPU, no Inductor")
    parser.add_argument("--output", type=Path, default=RESULTS / "models_live.json")
    given = parser.parse_args()
    if not given.dry and not torch.cuda.is_available():
        print("skipped: needs a GPU")
        return 0
    deadline = time.monotonic() - seconds_alive() + 60 * given.minutes
    head = {**made_with(given.hardware, given.seed), "dry": given.dry}
    rows = _before(given.output, head)
    done = {(row["model"], row["mode"], row["diode"], row.get("again", 0)) for row in rows}
    names = [n for n in MODELS if not given.models or n.startswith(tuple(given.models))]
    if not given.dry:
        warm_up()
    with tempfile.TemporaryDirectory() as folder:
        given.shared = Path(folder)
        for name, mode, diode, again in in_order(names[: given.problems]):
            needed = AUTOTUNE_S if (mode, diode) == ("max-autotune", False) else EXPECTED_S[mode]
            if mode not in given.modes or (name, mode, diode, again) in done:
                continue
            if not given.dry and time.monotonic() + needed > deadline:
                continue
            rows.append(_guarded(name, mode, diode, again, given))
            save(given.output, {**head, "summary": summary(rows), "rows": rows})
    show(rows)
    return 0


def in_order(names: list[str]) -> Iterator[tuple[str, str, bool, int]]:
    """All cases, the most telling first."""
    for stage in STAGES:
        for name in names:
            for mode, diode, again in stage:
                yield name, mode, diode, again


def warm_up() -> None:
    """The first compile of a process pays for imports, the model and helper processes."""
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


def _guarded(name: str, mode: str, diode: bool, again: int, given: argparse.Namespace) -> Row:
    """One case; what fails is a result, too, and the others go on."""
    begun = time.monotonic()
    found, fault = attempted(lambda: measured(name, mode, diode, again, given))
    way = {"model": name, "mode": mode, "diode": diode, "again": again}
    row = found or {**way, "fault": fault}
    result = row.get("gpu_ms", row.get("fault"))
    spent = time.monotonic() - begun
    print(f"{name}, {mode}, diode {diode}: {result} ({spent:.0f} s)", flush=True)
    return row


def _before(path: Path, head: dict[str, Any]) -> list[Row]:
    if not path.exists():
        return []
    data = json.loads(path.read_text())
    same = all(data.get(key) == head.get(key) for key in ("seed", "gpu", "torch", "dry"))
    rows = [row for row in data["rows"] if "fault" not in row] if same else []
    # The cache of a pair that was not finished is gone: both are made again.
    pairs = {n for n in MODELS if _paired([row for row in rows if row["model"] == n])}
    return [row for row in rows if not row.get("again") or row["model"] in pairs]


if __name__ == "__main__":
    sys.exit(main())
