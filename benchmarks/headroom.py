"""What better choices could still gain, by the live results and the model. Needs no GPU.

    python benchmarks/headroom.py

Single matmuls (`results/selection_live.json`): GPU time over the best known of a chooser that is
never wrong, but may have a kernel compiled for so many of the problems only, and what that makes of
compile time, which is to stay low as well; what the shipped model chooses, whichever model the run
was of, and how much of its regret is the choice between its kernel and ATen; and what the times of
a sweep over the complete space would have chosen where there was one: a yardstick and no bound,
since a model does not follow each time's noise. And what the shipped model chooses on the problems
of the live runs before, on those of all of them, and on those only the last one had; a problem that
several had counts as it was in the last.

Whole models (`results/models_live.json`): the time of a call, had every matmul the fastest kernel
the model knows of, and all else stayed as it is. That a kernel may take along what follows the
matmul is not counted, nor that plain torch pads some matmuls of a training step: an estimate, which
a measured time may beat.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from _live import RESULTS, Row, as_table, geomean, made_with, quantile, save, shipped
from _models_ratios import IN_TURN
from _selection import DIODE, VALIDATION, chosen_aten, plainly, ratios

from torch_diode.candidates.gpu.eligibility import rows_aligned
from torch_diode.files.datasets import read_dataset
from torch_diode.hardware import known
from torch_diode.heuristics import policy
from torch_diode.heuristics.base import Heuristic
from torch_diode.integration.deciding.plain_choice import runs_alone
from torch_diode.types.candidate import ATEN
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import DTYPE_BYTES, MMShape

SHARES = (0.0, 0.2, 0.4, 0.6, 1.0)
MOST_COMPILE = 1.5
"""Compile time over plain torch's that is to be kept to."""
MODE = "reduce-overhead"


def kernels_allowed(compiled: float) -> float:
    """The share of problems that may get a kernel, where compiling one makes a compile `compiled`
    times as long and the geometric mean is to stay within `MOST_COMPILE`."""
    return min(math.log(MOST_COMPILE) / math.log(compiled), 1.0)


def perfect(rows: Sequence[Row], share: float) -> float:
    """Over the best known: the best kernel on that share of the problems, where it gains most, and
    ATen on the others."""
    losses = sorted(ratio for ratio, _, _ in ratios(rows, ATEN, "best"))
    with_aten = len(losses) - round(share * len(losses))
    return geomean([*losses[:with_aten], *[1.0] * (len(losses) - with_aten)])


def judged_again(rows: Sequence[Row], heuristic: Heuristic, hardware: Hardware) -> Row:
    """What the shipped model chooses, by the times of a run that may be another model's; and with
    no wrong choice between its kernel and ATen."""
    again, right_side = [], []
    for aten_over_best, _, row in ratios(rows, ATEN, "best"):
        problem, times = MMShape.from_key(row["problem"]), row["times"]
        space, ranking = plainly(problem, heuristic, hardware)
        runs = str(runs_alone(space, ranking))
        names = (str(space[int(place)]) for place in ranking.order)
        kernel = next((times[n][0] for n in names if n != ATEN and n in times), math.inf)
        again.append({**row, DIODE: runs})
        right_side.append(aten_over_best * min(kernel / times[ATEN][0], 1.0))
    over_best, over_aten = (
        [ratio for ratio, _, _ in ratios(again, DIODE, other)] for other in ("best", ATEN)
    )
    return {
        "problems": len(over_best),
        "over best": geomean(over_best),
        "p99": quantile(over_best, 0.99),
        "most": max(over_best),
        "over ATen": geomean(over_aten),
        "most over ATen": max(over_aten),
        "ATen kept": chosen_aten(again),
        "ATen or its kernel, never wrong": geomean(right_side),
    }


def over_best(rows: Sequence[Row], heuristic: Heuristic, hardware: Hardware) -> dict[str, float]:
    """By problem: what the shipped model chooses over the best known, where it was timed."""
    found = {}
    for _, _, row in ratios(rows, ATEN, "best"):
        chosen = runs_alone(*plainly(MMShape.from_key(row["problem"]), heuristic, hardware))
        for ratio, _, _ in ratios([{**row, DIODE: str(chosen)}], DIODE, "best"):
            found[row["problem"]] = ratio
    return found


def is_aligned(key: str) -> bool:
    """Whether both operands' rows, as they lie in memory, are multiples of 16 bytes."""
    problem = MMShape.from_key(key)
    sizes, item = (problem.M, problem.N, problem.K), DTYPE_BYTES[problem.dtype]
    return bool(rows_aligned(sizes, problem.transpose_a, problem.transpose_b, item))


def other_cuts(
    last: Sequence[Row], before: Sequence[Row], heuristic: Heuristic, hardware: Hardware
) -> list[Row]:
    """The same, of other draws than the last one."""
    own, earlier = (over_best(rows, heuristic, hardware) for rows in (last, before))
    met = {row["problem"] for row in before}
    cuts = {
        "runs before, rows of whole 16 bytes": [v for k, v in earlier.items() if is_aligned(k)],
        "runs before, other rows": [v for k, v in earlier.items() if not is_aligned(k)],
        "all runs": list({**earlier, **own}.values()),
        "the last run, problems of no other": [v for k, v in own.items() if k not in met],
    }
    return [
        {"of": name, "problems": len(v), "over best": geomean(v), "p99": quantile(v, 0.99)}
        for name, v in cuts.items()
    ]


def by_the_sweep(rows: Sequence[Row], hardware: Hardware) -> Row:
    """Over the best known, on the problems whose complete space was swept: what took least time
    there, and torch-diode's choice. A sweep's kernels get their sizes as arguments."""
    data = read_dataset(str(VALIDATION).format(hardware.name))
    codes, names = data.codes("template")
    template = np.asarray(names)[codes]
    times = data.values("time_us").astype(np.float64)
    times -= np.where(template == ATEN, 0.0, policy.fixed_sizes_gain(times))
    times[~np.isin(template, (ATEN, "triton::mm", "triton::bmm"))] = np.nan
    fastest = [int(row) for row in data.problems.fastest(times, 1)]
    chosen = {data.problem(row).key: str(data[row].candidate) for row in fastest}
    swept = [row for row in rows if chosen.get(row["problem"]) in row["times"]]
    again = [{**row, DIODE: chosen[row["problem"]]} for row in swept]
    found: Row = {"problems": len(swept)}
    for name, some in (("by its times", again), ("torch-diode", swept)):
        over = [ratio for ratio, _, _ in ratios(some, DIODE, "best")]
        found |= {name: geomean(over), f"{name}, p99": quantile(over, 0.99)}
    return found


def single_matmuls(results: Row, heuristic: Heuristic, hardware: Hardware) -> Row:
    """All that is asked about `selection_live.json`."""
    rows = [row for row in results["rows"] if "times" in row]
    compiled = results["summary"]["compile seconds"]["diode over plain, a template compiled"]
    allowed = kernels_allowed(compiled)
    return {
        "problems": len(rows),
        "compile over plain, a template compiled": compiled,
        "kernels allowed": allowed,
        "never wrong": [
            {"kernels": share, "compile": compiled**share, "over best": perfect(rows, share)}
            for share in sorted({*SHARES, allowed})
        ],
        "torch-diode": judged_again(rows, heuristic, hardware),
        "the sweep": by_the_sweep(rows, hardware),
    }


def whole_models(results: Row, heuristic: Heuristic, hardware: Hardware) -> list[Row]:
    """Of each model: microseconds of a plain call, of its matmuls by prediction, and the ratio that
    is left if those were perfect; beside it the measured one."""
    rows = results["rows"]
    plain = {
        row["model"]: 1e3 * row["gpu_ms"]
        for row in rows
        if IN_TURN in row and row["mode"] == MODE and not row["diode"]
    }
    found = []
    for row in rows:
        if IN_TURN in row or row["mode"] != MODE or not row["diode"]:
            continue
        aten = best = 0.0
        for decision in row["decisions"]:
            problem = MMShape.from_key(decision["problem"])
            space, ranking = plainly(problem, heuristic, hardware)
            times = ranking.predicted_us
            aten += decision["count"] * float(times[space.is_template(ATEN)][0])
            best += decision["count"] * float(times.min())
        name = row["model"]
        found.append(
            {
                "model": name,
                "call": plain[name],
                "matmuls, ATen": aten,
                "matmuls, best": best,
                "at best over plain": 1 - (aten - best) / plain[name],
                "measured over plain": results["summary"]["models"][name][f"gpu over {MODE}"],
            }
        )
    return found


def show(found: Row) -> None:
    """Small tables."""
    single = found["single matmuls"]
    head = ["kernels on", "compile over plain", "GPU time over the best known"]
    print(as_table([head, *(list(one.values()) for one in single["never wrong"])]))
    for part in (single["torch-diode"], single["the sweep"]):
        print(as_table([list(part), list(part.values())]))
    cuts = found["other draws"]
    print(as_table([list(cuts[0]), *(list(one.values()) for one in cuts)]))
    models = found["models"]
    print(as_table([list(models[0]), *(list(one.values()) for one in models)]))
    print(f"at best over plain, geometric mean {found['models at best']:.4f}")


def main() -> None:
    """Compute, print, write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hardware", default="nvidia-h200")
    parser.add_argument("--output", type=Path, default=RESULTS / "headroom.json")
    given = parser.parse_args()
    hardware = known(given.hardware)
    heuristic = shipped(hardware)
    single, whole = (
        json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
        for name in ("selection_live", "models_live")
    )
    before = [
        row
        for file in sorted(RESULTS.glob("selection_live_seed_*.json"))
        for row in json.loads(file.read_text(encoding="utf-8"))["rows"]
    ]
    models = whole_models(whole, heuristic, hardware)
    found = {
        "models of the live runs": [single["model"], whole["model"]],
        "single matmuls": single_matmuls(single, heuristic, hardware),
        "other draws": other_cuts(single["rows"], before, heuristic, hardware),
        "models": models,
        "models at best": geomean([one["at best over plain"] for one in models]),
    }
    show(found)
    save(given.output, {**made_with(given.hardware), **found})


if __name__ == "__main__":
    main()
