"""Possible gain of better choices, by the live results and the model. Needs no GPU.

    python benchmarks/headroom.py

Single matmuls (`results/selection_live.json`): GPU time over the best known of a perfect chooser
that may compile a kernel for a limited share of the problems, and the resulting compile time; the
shipped model's choices by the run's times, and the part of its regret due to choosing between its
kernel and ATen; and the choices by the times of a sweep over the complete space, where there was
one. The last is no bound, since a model does not follow each time's noise. The shipped model is
also scored on the problems of earlier live runs, of all runs, and of the last run alone; a problem
of several runs counts with its last times.

Whole models (`results/models_live.json`): the time of a call if every matmul had the fastest kernel
the model knows and all else stayed the same. This is an estimate that a measured time may beat: it
ignores fused epilogues and plain torch's padding.
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
from torch_diode.integration.rank import single_choice
from torch_diode.types.candidate import ATEN
from torch_diode.types.hardware import Hardware
from torch_diode.types.problem import DTYPE_BYTES, MMShape

SHARES = (0.0, 0.2, 0.4, 0.6, 1.0)
MOST_COMPILE = 1.5
"""Target of compile time over plain torch's."""
MODE = "reduce-overhead"


def kernels_allowed(compiled: float) -> float:
    """Share of problems that may get a kernel, if compiling one makes a compile `compiled` times as
    long and the geometric mean is to stay within `MOST_COMPILE`."""
    return min(math.log(MOST_COMPILE) / math.log(compiled), 1.0)


def perfect(rows: Sequence[Row], share: float) -> float:
    """Time over the best known with the best kernel on the given share of the problems, where it
    gains most, and ATen on the others."""
    losses = sorted(ratio for ratio, _, _ in ratios(rows, ATEN, "best"))
    with_aten = len(losses) - round(share * len(losses))
    return geomean([*losses[:with_aten], *[1.0] * (len(losses) - with_aten)])


def scored_again(rows: Sequence[Row], heuristic: Heuristic, hardware: Hardware) -> Row:
    """Scores of the shipped model's choices by the times of a run, also with a perfect choice
    between its kernel and ATen."""
    again, right_side = [], []
    for aten_over_best, _, row in ratios(rows, ATEN, "best"):
        problem, times = MMShape.from_key(row["problem"]), row["times"]
        space, ranking = plainly(problem, heuristic, hardware)
        runs = str(single_choice(space, ranking))
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
    """The shipped model's choice over the best known, per problem, where it was timed."""
    found = {}
    for _, _, row in ratios(rows, ATEN, "best"):
        chosen = single_choice(*plainly(MMShape.from_key(row["problem"]), heuristic, hardware))
        for ratio, _, _ in ratios([{**row, DIODE: str(chosen)}], DIODE, "best"):
            found[row["problem"]] = ratio
    return found


def is_aligned(key: str) -> bool:
    """Whether the rows of both operands in memory are multiples of 16 bytes."""
    problem = MMShape.from_key(key)
    sizes, item = (problem.M, problem.N, problem.K), DTYPE_BYTES[problem.dtype]
    return bool(rows_aligned(sizes, problem.transpose_a, problem.transpose_b, item))


def other_cuts(
    last: Sequence[Row], before: Sequence[Row], heuristic: Heuristic, hardware: Hardware
) -> list[Row]:
    """The same scores for other sets of problems than the last run's."""
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
    """Time over the best known, on swept problems, of the sweep's fastest kernel and of
    torch-diode's choice. A sweep's kernels take their sizes as arguments."""
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
    """All results for `selection_live.json`."""
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
        "torch-diode": scored_again(rows, heuristic, hardware),
        "the sweep": by_the_sweep(rows, hardware),
    }


def whole_models(results: Row, heuristic: Heuristic, hardware: Hardware) -> list[Row]:
    """Per model: microseconds of a plain call and of its matmuls by prediction, the ratio with
    perfect matmuls, and the measured ratio."""
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
